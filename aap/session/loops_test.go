package session_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// What is a loop, and what an honest agent does.
func TestLoops(t *testing.T) {
	const order = `{"order":1}`
	write := step{action: "pay", category: "escalation_trigger", params: order}
	read := step{action: "status", params: order}
	refuse := step{kind: "deny", action: "refund", params: order}
	ask := func(id, status string) step {
		return step{kind: "escalate", action: "hand_over", params: order, category: "escalation_trigger",
			escalate: fmt.Sprintf(`{"required":true,"escalation_id":%q,"escalation_status":%q}`, id, status)}
	}
	with := func(s step, change func(*step)) step { change(&s); return s }
	failed := with(write, func(s *step) { s.executed = `{"tool_name":"pay","error":"card declined"}` })
	reply := step{kind: "recommend", action: "reply", params: order}
	tied := func(second int, s step) step { s.second = second; return s }
	times := func(n int, s step) []step { return slices.Repeat([]step{s}, n) }
	loop := func(text string, n, first, last, at int) string {
		return fmt.Sprintf(`ACTION_LOOP MEDIUM tr-%d: %s %d times in a row with the same target and parameters, from trace "tr-%d" to trace "tr-%d"`, at, text, n, first, last)
	}
	paid, refused := `"pay" was executed`, `"refund" was refused`
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"a write twice":               {times(2, write), nil},
		"a write three times":         {times(3, write), []string{loop(paid, 3, 1, 3, 3)}},
		"a write 94 times":            {times(94, write), []string{loop(paid, 94, 1, 94, 3)}},
		"a read nine times":           {times(9, read), nil},
		"a read ten times":            {times(10, read), []string{loop(`"status" was executed`, 10, 1, 10, 10)}},
		"a refusal three times":       {times(3, refuse), []string{loop(refused, 3, 1, 3, 3)}},
		"three transfers":             {[]step{ask("a", "approved"), ask("b", "pending"), ask("c", "pending"), ask("d", "pending"), ask("a", "approved"), ask("b", "approved"), ask("c", "approved"), ask("d", "approved")}, []string{loop(`"hand_over" was escalated`, 8, 1, 8, 4)}},
		"a transfer asked for again":  {[]step{ask("a", "pending"), ask("a", "pending"), ask("a", "pending"), ask("a", "pending"), ask("a", "approved")}, nil},
		"a transfer that timed out":   {[]step{ask("a", "timeout"), ask("b", "timeout"), ask("c", "timeout"), ask("d", "timeout")}, nil},
		"replies":                     {times(20, reply), nil},
		"retries after errors":        {append(times(9, failed)[:8:8], write), nil},
		"more retries than a human":   {times(10, failed), []string{loop(paid, 10, 1, 10, 10)}},
		"an error between writes":     {[]step{write, failed, write, write}, []string{loop(paid, 4, 1, 4, 4)}},
		"pages":                       {[]step{with(write, func(s *step) { s.params = `{"page":1}` }), with(write, func(s *step) { s.params = `{"page":2}` }), with(write, func(s *step) { s.params = `{"page":3}` })}, nil},
		"other targets":               {[]step{with(write, func(s *step) { s.target = `{"type":"t","identifier":"1"}` }), with(write, func(s *step) { s.target = `{"type":"t","identifier":"2"}` }), write}, nil},
		"nothing to compare":          {times(20, with(write, func(s *step) { s.params = "" })), nil},
		"only a target":               {times(3, with(write, func(s *step) { s.params, s.target = "", `{"type":"t","identifier":"1"}` })), []string{loop(paid, 3, 1, 3, 3)}},
		"only equal inputs":           {times(3, with(write, func(s *step) { s.params, s.executed = "", `{"tool_name":"pay","inputs":{"to":"x"}}` })), []string{loop(paid, 3, 1, 3, 3)}},
		"only other inputs":           {[]step{with(write, func(s *step) { s.params, s.executed = "", `{"tool_name":"pay","inputs":{"to":"x"}}` }), with(write, func(s *step) { s.params, s.executed = "", `{"tool_name":"pay","inputs":{"to":"y"}}` }), with(write, func(s *step) { s.params, s.executed = "", `{"tool_name":"pay","inputs":{"to":"z"}}` })}, nil},
		"parameters in another order": {[]step{with(write, func(s *step) { s.params = `{"a":1,"b":2}` }), with(write, func(s *step) { s.params = `{"b":2,"a":1}` }), with(write, func(s *step) { s.params = `{"a":1,"b":2}` })}, []string{loop(paid, 3, 1, 3, 3)}},
		"a reply between":             {[]step{write, write, reply, write, write}, nil},
		"another act between":         {[]step{write, write, read, write, write}, nil},
		"two loops":                   {slices.Concat(times(3, write), times(4, refuse)), []string{loop(paid, 3, 1, 3, 3), loop(refused, 4, 4, 7, 6)}},
		"the same loop twice":         {slices.Concat(times(3, write), times(1, reply), times(3, write)), []string{loop(paid, 3, 1, 3, 3), loop(paid, 3, 5, 7, 7)}},
		"without a session":           {times(20, with(write, func(s *step) { s.session = "-" })), nil},
		"one trace id":                {times(20, with(write, func(s *step) { s.id = "tr-1" })), nil},
		"all at once":                 {times(3, tied(1, write)), []string{loop(paid, 3, 1, 3, 3)}},
		"another at the third's time": {[]step{write, write, tied(3, write), tied(3, read), tied(4, write)}, nil},
		"another at the fourth's":     {[]step{write, write, write, tied(4, write), tied(4, read), write}, []string{loop(paid, 3, 1, 3, 3)}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, whole(t, session.Found{}, c.steps...), c.want...) })
	}
}

// A loop that crosses the end of a part is reported once, in the part in which it becomes one.
func TestLoopsOverParts(t *testing.T) {
	write := func(second int) step {
		return step{action: "pay", category: "escalation_trigger", params: `{"order":1}`, second: second}
	}
	loop := func(at string, n int, from, to string) string {
		return fmt.Sprintf(`tr-%s: "pay" was executed %d times in a row with the same target and parameters, from trace "tr-%s" to trace "tr-%s"`, at, n, from, to)
	}
	for name, c := range map[string]struct {
		parts [][]step
		want  []string
	}{
		"begins before":      {[][]step{{write(1), write(2)}, {write(3)}}, []string{"", loop("2-1", 3, "1-1", "2-1")}},
		"continues":          {[][]step{{write(1), write(2), write(3)}, {write(4), write(5)}, {write(6)}}, []string{loop("1-3", 3, "1-1", "1-3"), "", ""}},
		"ends with the part": {[][]step{{write(1), write(2)}, {{second: 3, kind: "recommend"}, write(4)}}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parts(t, c.parts...); !slices.Equal(got, c.want) {
				t.Errorf("found\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// Traces of one time have no order: whichever arrives first, the loops are the same.
func TestOrderOfArrivalDoesNotMatterForLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "traces")
		steps, second := make([]step, n), 1
		for i := range steps {
			second += rapid.SampledFrom([]int{0, 1, 1, 1}).Draw(t, "later")
			order := rapid.SampledFrom([]int{1, 1, 1, 1, 2}).Draw(t, "order")
			steps[i] = step{id: fmt.Sprint("tr-", i), second: second, action: "pay", category: "escalation_trigger", params: fmt.Sprintf(`{"order":%d}`, order)}
		}
		shuffled := slices.Clone(steps)
		rapid.SampledFrom([]func(){func() {}, func() { slices.Reverse(shuffled) }, func() {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			rng.Shuffle(n, func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		}}).Draw(t, "arrival")()
		slices.SortStableFunc(shuffled, func(a, b step) int { return cmp.Compare(a.second, b.second) })
		if a, b := loopCounts(t, steps), loopCounts(t, shuffled); !slices.Equal(a, b) {
			t.Fatalf("loops %q, and %q in another order of arrival", a, b)
		}
	})
}

// loopCounts returns the lengths of the loops of a session.
func loopCounts(t *rapid.T, steps []step) (counts []string) {
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1, LastPart: true}, nil)
	for i, s := range steps {
		trace, err := s.admit(i)
		if err != nil {
			t.Fatal(err)
		}
		j.Add(trace, &clean)
	}
	v, _ := j.Finish(nil, at)
	for _, f := range v.Findings {
		if f.Type == schema.ActionLoop {
			counts = append(counts, strings.Fields(f.Description)[3])
		}
	}
	return counts
}

// While sessions run, each run that becomes a loop is reported once, at the trace at which the
// verdict reports it, and wherever the state was encoded between.
func TestLoopsOfRunningSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var loops session.Loops
		var acts session.Acts
		judges := map[string]*session.Judge{}
		var running, sealed []string
		for i := range rapid.IntRange(1, 120).Draw(t, "traces") {
			s := step{id: fmt.Sprint("tr-", i), second: i + 1, session: fmt.Sprint("s", rapid.IntRange(1, 16).Draw(t, "session")%3),
				kind:   rapid.SampledFrom([]string{"execute", "execute", "deny", "recommend"}).Draw(t, "kind"),
				params: rapid.SampledFrom([]string{`{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":2}`}).Draw(t, "parameters"), category: "escalation_trigger"}
			trace, err := s.admit(i)
			if err != nil {
				t.Fatal(err)
			}
			if judges[s.session] == nil {
				judges[s.session] = session.New(session.Head{AgentID: "a", SessionID: s.session, Part: 1, LastPart: true}, nil)
			}
			judges[s.session].Add(trace, &clean)
			if f, found := loops.Add(acts.Of(trace), trace.TraceID); found {
				running = append(running, f.TraceID)
			}
			if rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
				var known []session.Known
				for _, s := range rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "known") {
					known = append(known, session.KnownSession(fmt.Sprint("s", s), rapid.SampledFrom([]int64{0, 1, trace.Timestamp.UnixNano()}).Draw(t, "newest")))
				}
				if loops, err = session.LoadLoops(loops.Append(nil, known), known); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, j := range judges {
			v, _ := j.Finish(nil, at)
			for _, f := range v.Findings {
				if f.Type == schema.ActionLoop {
					sealed = append(sealed, f.TraceID)
				}
			}
		}
		slices.Sort(running)
		slices.Sort(sealed)
		if !slices.Equal(running, sealed) {
			t.Fatalf("alerts name the traces %q, verdicts %q", running, sealed)
		}
	})
}

// The sessions that acted last are followed: sixteen of them, and less if their traces have long ids.
// An ended session makes room.
func TestLimitsOfRunningLoops(t *testing.T) {
	for name, c := range map[string]struct {
		others int
		end    bool
		id     string // of the first trace
		want   bool
	}{
		"fifteen others":         {others: 15, want: true},
		"sixteen others":         {others: 16, want: false},
		"sixteen ended sessions": {others: 16, end: true, want: true},
		"1,024 bytes of ids":     {others: 2, id: strings.Repeat("x", 300), want: true},
		"more bytes of ids":      {others: 4, id: strings.Repeat("x", 300), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			var loops session.Loops
			var acts session.Acts
			place := 0
			add := func(s step) bool {
				place++
				s.id, s.category, s.params = c.id+fmt.Sprint(place), "escalation_trigger", `{"a":1}`
				trace := s.trace(t, place)
				_, found := loops.Add(acts.Of(trace), trace.TraceID)
				return found
			}
			add(step{})
			add(step{})
			for i := range c.others {
				add(step{session: fmt.Sprint("other-", i), end: c.end})
			}
			if got := add(step{}); got != c.want {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

// A session that was forgotten is followed again when it goes on, so one row may be reported twice.
func TestForgottenLoopIsToldAgain(t *testing.T) {
	for others, want := range map[int]int{15: 1, 16: 2} {
		var loops session.Loops
		var acts session.Acts
		place, told := 0, 0
		add := func(s step) {
			place++
			s.id, s.category, s.params = fmt.Sprint(place), "escalation_trigger", `{"a":1}`
			trace := s.trace(t, place)
			if _, found := loops.Add(acts.Of(trace), trace.TraceID); found {
				told++
			}
		}
		for range session.Repeats + 1 {
			add(step{})
		}
		for i := range others {
			add(step{session: fmt.Sprint("other-", i)})
		}
		for range session.Repeats + 1 {
			add(step{})
		}
		if told != want {
			t.Errorf("with %d other sessions it is told %d times, want %d", others, told, want)
		}
	}
}

func TestLoadLoopsRefusesOtherBytes(t *testing.T) {
	var loops session.Loops
	var acts session.Acts
	var times [3]int64
	for i := range times {
		trace := step{params: `{"a":1}`, session: fmt.Sprint("s", i)}.trace(t, i)
		times[i] = trace.Timestamp.UnixNano()
		loops.Add(acts.Of(trace), fmt.Sprint("tr-", i))
	}
	whole := loops.Append(nil, nil)
	if again, err := session.LoadLoops(whole, nil); err != nil || string(again.Append(nil, nil)) != string(whole) {
		t.Fatalf("%v: %x, want %x", err, again.Append(nil, nil), whole)
	}
	known := []session.Known{session.KnownSession("s1", times[1]), session.KnownSession("s2", 0)}
	if short := loops.Append(nil, known); len(short) > len(whole)-8 { // two hashes of 6 bytes less, and three bytes that say which session it is more
		t.Errorf("with two known sessions they take %d bytes, want at most %d", len(short), len(whole)-8)
	} else if _, err := session.LoadLoops(short, known[:1]); err == nil {
		t.Error("a session that is not known is read")
	}
	for n := 1; n < len(whole); n++ {
		if _, err := session.LoadLoops(whole[:n], nil); err == nil {
			t.Errorf("%d of %d bytes are read", n, len(whole))
		}
	}
	if _, err := session.LoadLoops(append([]byte{9}, whole[1:]...), nil); err == nil {
		t.Error("an unknown kind is read")
	}
	if _, err := session.LoadLoops(append([]byte{whole[0], 18}, slices.Repeat(whole[2:], 6)...), nil); err == nil {
		t.Error("18 sessions are read")
	}
	older, err := hex.DecodeString("01ec18eac8d758b1eb1e06092954efe9d9000000000000000000ca25c24ff68f18010101010474722d30" +
		"01e8bc163c82eee1871e06092954efe9d900000000000000000094c0fd4ff68f18010101010474722d31" +
		"01ad328846aa18b32a1e06092954efe9d90000000000000000005e5b3950f68f18010101010474722d32") // the same runs, as b10c45f5 wrote them
	if err != nil {
		t.Fatal(err)
	}
	if read, err := session.LoadLoops(older, nil); err != nil || string(read.Append(nil, nil)) != string(whole) {
		t.Errorf("the runs of an older engine: %v: %x, want %x", err, read.Append(nil, nil), whole)
	}
}

// Following running sessions allocates nothing per trace.
func TestLoopsAllocateNothing(t *testing.T) {
	var acts session.Acts
	var loops session.Loops
	traces := make([]*schema.Trace, 40)
	for i := range traces {
		traces[i] = step{session: fmt.Sprint("s", i%20), params: fmt.Sprintf(`{"b":%d,"a":"text"}`, i), category: "escalation_trigger"}.trace(t, i)
	}
	all := func() {
		for _, trace := range traces {
			loops.Add(acts.Of(trace), trace.TraceID)
		}
	}
	all()
	if n := testing.AllocsPerRun(100, all); n > 0 {
		t.Errorf("%.1f allocations for 40 traces", n)
	}
}

// The measurement behind the numbers: over 550 sessions of real agents, how often is the same done
// in a row? Three for refusals and ten for reads separate the loops from everything else.
func TestCorpusLoops(t *testing.T) {
	found := map[string]string{}
	lengths := map[string]map[int]int{} // kind → length of a run of two or more → runs
	alerts := 0
	for head, traces := range corpusSessions(t) {
		slices.SortStableFunc(traces, func(a, b *schema.Trace) int { return cmp.Compare(a.Timestamp.UnixNano(), b.Timestamp.UnixNano()) })
		j := session.New(head, nil)
		var loops session.Loops
		var acts session.Acts
		last, run := session.Act{}, 0
		for i, trace := range traces {
			j.Add(trace, &clean)
			act := acts.Of(trace)
			if _, loop := loops.Add(act, trace.TraceID); loop {
				alerts++
			}
			if i > 0 && session.Equal(act, last) {
				run++
			} else {
				count(lengths, last, run)
				run = 1
			}
			last = act
		}
		count(lengths, last, run)
		v, _ := j.Finish(nil, at)
		for _, f := range v.Findings {
			if f.Type == schema.ActionLoop {
				found[head.SessionID[:8]] = head.AgentID[strings.LastIndex(head.AgentID, ":")+1:] + ": " + strings.SplitAfter(f.Description, "in a row")[0]
			}
		}
	}
	t.Logf("runs of two or more equal acts, by kind and length: %v", lengths)
	want := map[string]string{
		"4f2686af": `tau2-gpt-4.1-sft-telecom: "get_details_by_id" was executed 94 times in a row`,
		"cae68900": `tau2-gpt-4.1-sft-telecom: "get_details_by_id" was executed 96 times in a row`,
		"8ac8f10b": `tau2-gpt-4.1-sft-telecom: "get_details_by_id" was executed 72 times in a row`,
		"c11efbca": `tau2-gpt-4.1-sft-telecom: "get_details_by_id" was executed 67 times in a row`,
		"ac425abd": `tau2-gpt-4.1-sft-telecom: "get_data_usage" was executed 64 times in a row`,
		"5612fc39": `tau2-gpt-4.1-sft-airline: "respond_to_user" was refused 4 times in a row`,
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		t.Logf("session %s of %s", id, found[id])
	}
	if !maps.Equal(found, want) || alerts != len(want) {
		t.Errorf("%d alerts; found %q, want %q", alerts, found, want)
	}
	wantLengths := map[string]map[int]int{"bounded": {2: 2, 64: 1, 67: 1, 72: 1, 94: 1, 96: 1}, "write": {3: 1}, "refusal": {2: 2, 4: 1}}
	if fmt.Sprint(lengths) != fmt.Sprint(wantLengths) {
		t.Errorf("runs %v, want %v", lengths, wantLengths)
	}
}

// count counts a run of equal acts.
func count(lengths map[string]map[int]int, act session.Act, run int) {
	kind := session.KindOf(act)
	if run < 2 || kind == "" {
		return
	}
	if lengths[kind] == nil {
		lengths[kind] = map[int]int{}
	}
	lengths[kind][run]++
}

// BenchmarkLoops measures what following running sessions adds to a trace.
func BenchmarkLoops(b *testing.B) {
	var traces []*schema.Trace
	for _, part := range corpusSessions(b) {
		traces = append(traces, part...)
	}
	var loops session.Loops
	var acts session.Acts
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		trace := traces[i%len(traces)]
		loops.Add(acts.Of(trace), trace.TraceID)
	}
}
