package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// tracedRow is a row with its trace.
type tracedRow struct {
	trace string
	row   Row
}

// tracedInput returns a session of such rows and one more, which the test changes so that both
// verifiers compare every row with its trace. A row without inputs_json gets the link to its
// trace and the given inputs.
func tracedInput(rows []tracedRow) *Input {
	in := sampleInput(0)
	rows = append(slices.Clone(rows), tracedRow{`{"trace_id":"t","action":{"type":"execute","name":"n"},"context":{"metadata":{"execution":{}}}}`,
		Row{ActionType: ActionToolCall, ToolName: "aap.n", InputsJSON: `{"trace_id":"t","trace_sha256":"SHA256","inputs":{}}`, OutputsJSON: "{}"}})
	traces, list := "", make([]Row, len(rows))
	for i, r := range rows {
		trace := r.trace + strings.Repeat(" ", i) // no two traces are the same
		list[i] = r.row
		list[i].InputsJSON = strings.Replace(r.row.InputsJSON, "SHA256", hexSHA256([]byte(trace)), 1)
		traces += trace + "\n"
	}
	in.Rows, in.TraceCount, in.Members = SliceRows(list), int64(len(list)), []Member{{Name: TracesMember, Data: []byte(traces)}}
	return in
}

// lastChanged changes the error of the last row before the seal, which no row hash covers.
func lastChanged(t *testing.T, in *Input) []byte {
	t.Helper()
	return withFile(t, build(t, in, testKey("k")).Bytes, logFile, func(log []byte) []byte {
		at := bytes.LastIndex(log[:bytes.LastIndex(log, []byte(`"error": ""`))], []byte(`"error": ""`)) + len(`"error": "`)
		return slices.Insert(log, at, []byte("changed")...)
	})
}

// bothName returns the faults that Go reports for a bundle. verify.py must report the same.
func bothName(t *testing.T, bundle []byte) (faults []string) {
	t.Helper()
	for _, f := range judge(t, bundle, Options{}).Faults {
		faults = append(faults, f.Where+": "+f.Message)
	}
	_, output := python(t, unpack(t, bundle))
	var said []string
	for line := range strings.Lines(output) {
		if fault, ok := strings.CutPrefix(line, "FAIL  "); ok {
			said = append(said, strings.TrimSuffix(fault, "\n"))
		}
	}
	if !slices.Equal(said, faults) {
		t.Errorf("Go reports\n%s\nverify.py reports\n%s", strings.Join(faults, "\n"), strings.Join(said, "\n"))
	}
	return faults
}

// After a row was changed, both verifiers compare every row with its trace as docs/BUNDLES.md
// maps them (Rows), and name the field that differs. A field that the trace does not have, that
// was redacted or that was truncated is not reported.
func TestRowsAreComparedWithTheirTraces(t *testing.T) {
	const tied = `{"trace_id":"t","card_id":"c","trace_sha256":"SHA256","inputs":`
	// acted returns a trace of an action, executed one of an execution.
	acted := func(action string) string { return `{"trace_id":"t","card_id":"c","action":{` + action + `}}` }
	executed := func(execution string) string {
		return `{"trace_id":"t","card_id":"c","action":{"type":"execute","name":"n"},"context":{"metadata":{"execution":{` + execution + `}}}}`
	}
	timed := func(at string) string {
		return `{"trace_id":"t","card_id":"c","action":{"type":"execute","name":"n"},"timestamp":"` + at + `"}`
	}
	plan := func(change func(*Row)) Row {
		row := Row{ActionType: "aap.execute", ToolName: "aap.n", InputsJSON: tied + "{}}", OutputsJSON: "{}"}
		change(&row)
		return row
	}
	call := func(change func(*Row)) Row {
		return plan(func(r *Row) { r.ActionType = ActionToolCall; change(r) })
	}
	as := func(*Row) {}
	in := func(inputs string) func(*Row) { return func(r *Row) { r.InputsJSON = tied + inputs + "}" } }
	tool := func(name string) func(*Row) { return func(r *Row) { r.ToolName = name } }
	out := func(outputs string) func(*Row) { return func(r *Row) { r.OutputsJSON = outputs } }
	cost := func(cents int64) func(*Row) { return func(r *Row) { r.CostCents = cents } }
	fails := func(text string) func(*Row) { return func(r *Row) { r.Error = text } }
	at := func(seconds float64) func(*Row) { return func(r *Row) { r.Timestamp = seconds } }
	const execute = `"type":"execute","name":"n"`
	cases := []struct {
		rule  string
		trace string
		row   Row
		want  string // the field that is named; "" for none
	}{
		{"an action is a plan", acted(execute), plan(as), ""},
		{"of its type", acted(`"type":"recommend","name":"n"`), plan(as), "action_type"},
		{"of its name", acted(`"type":"execute","name":"m"`), plan(as), "tool_name"},
		{"which is encoded", acted(`"type":"execute","name":"a:b%"`), plan(tool("aap.a:b%")), ""},
		{"with its parameters", acted(execute + `,"parameters":{"a":1}`), plan(in(`{"a":1}`)), ""},
		{"however they are spaced and escaped", acted(execute + `,"parameters":{ "a" : "\u0041" }`), plan(in(`{"a":"A"}`)), ""},
		{"and no others", acted(execute + `,"parameters":{"a":1}`), plan(as), "inputs_json"},
		{"which may be null", acted(execute + `,"parameters":null`), plan(as), ""},
		{"a redacted input is not compared", acted(execute + `,"parameters":{"token":"[REDACTED]"}`), plan(in(`{"token":"hunter2"}`)), ""},
		{"nor an input redacted in the row", acted(execute + `,"parameters":{"token":"hunter2"}`), plan(in(`{"token":"[REDACTED]"}`)), ""},
		{"nor one that is redacted in part", acted(execute + `,"parameters":{"h":"Bearer [REDACTED]"}`), plan(in(`{"h":"Bearer hunter2"}`)), ""},
		{"nor a name", acted(`"type":"execute","name":"[REDACTED]"`), plan(as), ""},
		{"the outputs of a plan are not its trace's", acted(execute), plan(out(`{"a":1}`)), ""},
		{"the error of a plan is not its trace's", acted(execute), plan(fails("x")), ""},
		{"the cost of a plan is not its trace's", acted(execute), plan(cost(7)), ""},
		{"an execution that is not an object counts as absent", `{"trace_id":"t","card_id":"c","action":{` + execute + `},"context":{"metadata":{"execution":[]}}}`, plan(as), ""},

		{"another trace's digest", acted(execute), plan(func(r *Row) { r.InputsJSON = strings.Replace(r.InputsJSON, "SHA256", hexSHA256(nil), 1) }), "inputs_json"},
		{"another trace's id", strings.Replace(acted(execute), `"t"`, `"u"`, 1), plan(as), "inputs_json"},
		{"another card", strings.Replace(acted(execute), `"c"`, `"d"`, 1), plan(as), "inputs_json"},
		{"a trace without a type says no more than its ids", acted(`"name":"m"`), plan(as), ""},
		{"a trace whose type is not a string is not compared", acted(`"type":1,"name":"m"`), plan(as), ""},
		{"a type may be empty", acted(`"type":"","name":"n"`), plan(as), "action_type"},
		{"a trace that is not an object is not compared", `"t"`, plan(as), ""},
		{"a trace that is not JSON is not compared", `{`, plan(as), ""},

		{"an execution is a tool call", executed(``), call(as), ""},
		{"not a plan", executed(``), plan(as), "action_type"},
		{"a name with a point is the tool", executed(`"tool_name":"web.get"`), call(tool("web.get")), ""},
		{"one without gets a namespace", executed(`"tool_name":"get"`), call(tool("tool.get")), ""},
		{"an empty name is the action's", executed(`"tool_name":""`), call(as), ""},
		{"another tool", executed(`"tool_name":"web.get"`), call(tool("web.put")), "tool_name"},
		{"its inputs", executed(`"inputs":{"a":1}`), call(in(`{"a":1}`)), ""},
		{"not others", executed(`"inputs":{"a":1}`), call(in(`{"a":2}`)), "inputs_json"},
		{"not none", executed(`"inputs":{"a":1}`), call(as), "inputs_json"},
		{"null inputs stay null", executed(`"inputs":null`), call(as), "inputs_json"},
		{"its outputs", executed(`"outputs":{"a":1}`), call(out(`{ "a": 1 }`)), ""},
		{"not other outputs", executed(`"outputs":{"a":1}`), call(out(`{"a":2}`)), "outputs_json"},
		{"nor a number that is written in another way", executed(`"outputs":{"a":1.50}`), call(out(`{"a":1.5}`)), "outputs_json"},
		{"where none are traced, none", executed(``), call(out(`{"a":1}`)), "outputs_json"},
		{"outputs that are not JSON differ", executed(`"outputs":"a"`), call(out("a")), "outputs_json"},
		{"a redacted output is not compared", executed(`"outputs":{"a":"[REDACTED]"}`), call(out(`{"a":"x"}`)), ""},
		{"nor are outputs that were cut off", executed(`"outputs":"long"`), call(out(`{"truncated":true,"head":"lo"}`)), ""},
		{"its error", executed(`"error":"503"`), call(fails("503")), ""},
		{"not another", executed(`"error":"503"`), call(as), "error"},
		{"where none is traced, none", executed(``), call(fails("x")), "error"},
		{"a redacted error is not compared", executed(`"error":"Bearer [REDACTED]"`), call(fails("Bearer hunter2")), ""},
		{"an error that is not a string counts as absent", executed(`"error":5`), call(as), ""},
		{"its cost", executed(`"cost_cents":7`), call(cost(7)), ""},
		{"not another cost", executed(`"cost_cents":7`), call(cost(8)), "cost_cents"},
		{"where none is traced, no cost", executed(``), call(cost(7)), "cost_cents"},
		{"a cost in parts of a cent is not compared", executed(`"cost_cents":1.5`), call(cost(7)), ""},

		{"its time", timed("1970-01-01T00:00:02.5Z"), plan(at(2.5)), ""},
		{"in any zone", timed("1970-01-01T01:00:02.5+01:00"), plan(at(2.5)), ""},
		{"within a millisecond", timed("1970-01-01T00:00:00.001Z"), plan(at(0)), ""},
		{"not later", timed("1970-01-01T00:00:00.002Z"), plan(at(0)), "timestamp"},
		{"not earlier", timed("1970-01-01T00:00:01Z"), plan(at(2)), "timestamp"},
		{"a timestamp that is not a time is not compared", timed("yesterday"), plan(at(2)), ""},

		// If several fields differ, the first in this order is named.
		{"inputs before outputs", executed(`"inputs":1,"outputs":1,"error":"x"`), call(as), "inputs_json"},
		{"outputs before the error", executed(`"outputs":1,"error":"x"`), call(tool("x.y")), "outputs_json"},
		{"the error before the tool", executed(`"error":"x"`), call(tool("x.y")), "error"},
		{"the tool before the cost", executed(`"cost_cents":1`), call(tool("x.y")), "tool_name"},
	}
	var rows []tracedRow
	var want []string
	for i, c := range cases {
		rows = append(rows, tracedRow{c.trace, c.row})
		if c.want != "" {
			want = append(want, differing(i, c.want))
		}
	}
	want = append(want, differing(len(cases), "error"))
	got := bothName(t, lastChanged(t, tracedInput(rows)))
	for i, c := range cases {
		if named := slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, fmt.Sprintf("row %d:", i+2)) }); named != (c.want != "") {
			t.Errorf("%s: named %t, want %q", c.rule, named, c.want)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// differing returns the fault of the row of that trace, counted from 0.
func differing(trace int, field string) string {
	return fmt.Sprintf("row %d: changed: its %s is not that of its trace, line %d of %s", trace+2, field, trace+1, TracesMember)
}

// A hundred rows are named; one more fault reports that there are others.
func TestAtMostAHundredRowsAreNamed(t *testing.T) {
	for differ, more := range map[int]string{99: "", 100: "rows 102-103: more of them differ from their traces", 102: "rows 102-105: more of them differ from their traces"} {
		rows := make([]tracedRow, differ)
		var want []string
		for i := range rows {
			rows[i] = tracedRow{"{}", Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}"}}
			want = append(want, differing(i, "inputs_json"))
		}
		if more == "" {
			want = append(want, differing(differ, "error"))
		} else {
			want = append(want[:100], more)
		}
		if got := bothName(t, lastChanged(t, tracedInput(rows))); !slices.Equal(got, want) {
			t.Errorf("%d differ:\n%s", differ, strings.Join(got, "\n"))
		}
	}
}

// Rows are compared with their traces wherever the two files are in the archive. A row without a
// trace and a trace without a row are named. If the traces were changed no row is named, and a
// seal needs no trace.
func TestWhatIsComparedWithTraces(t *testing.T) {
	in := tracedInput([]tracedRow{{"{}", Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: `{"trace_sha256":"SHA256"}`, OutputsJSON: "{}"}}})
	changed := lastChanged(t, in)
	named, sealed := []string{differing(1, "error")}[:1:1], []string{"rows 1-3: an input, output or error was changed after row 4 sealed them"}
	edited := func(edit func([]Member) []Member) []byte {
		return aivstest.Gzip(t, tarOfFiles(t, edit(entries(t, aivstest.Gunzip(t, changed)))...))
	}
	backwards := func(files []Member) []Member { slices.Reverse(files); return files }
	traces := func(data []byte) []byte {
		other := *in
		other.Members = []Member{{Name: TracesMember, Data: data}}
		return lastChanged(t, &other)
	}
	repeated := func(line int) func([]byte) []byte { // after the seal
		return func(log []byte) []byte { return append(log, bytes.SplitAfter(log, []byte("\n"))[line]...) }
	}
	for name, c := range map[string]struct {
		bundle []byte
		want   []string
	}{
		"as it is":                    {changed, named},
		"traces before the log":       {edited(backwards), named},
		"two seals":                   {withFile(t, changed, logFile, repeated(3)), named},
		"a row behind the seal":       {withFile(t, changed, logFile, repeated(2)), append(named, "row 5: added: it has the trace of row 3")},
		"no row behind the seal":      {withFile(t, changed, logFile, func(log []byte) []byte { return append(log, "{}\n"...) }), sealed},
		"and a row behind that":       {withFile(t, withFile(t, changed, logFile, func(log []byte) []byte { return append(log, "{}\n"...) }), logFile, repeated(2)), sealed},
		"more traces than rows":       {traces(append(in.Members[0].Data, "{}\n"...)), append(named, "traces.jsonl: the row of line 3 was removed")},
		"and two seals":               {withFile(t, traces(append(in.Members[0].Data, "{}\n"...)), logFile, repeated(3)), append(named, "traces.jsonl: the row of line 3 was removed")},
		"fewer traces than rows":      {traces([]byte("{}\n")), []string{"row 3: added: no line of traces.jsonl is its trace"}},
		"traces that were changed":    {edited(inFile(TracesMember, "{}", "{ }")), sealed},
		"traces that were lengthened": {edited(longerTraces), sealed},
		"traces that were taken out":  {edited(without(TracesMember)), sealed},
	} {
		if got := bothName(t, c.bundle); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Each fault that a changed row may have caused leads to a comparison of the rows with their
// traces.
func TestFaultsThatAChangedRowMayHaveCaused(t *testing.T) {
	in := tracedInput([]tracedRow{{`{"trace_id":"t","card_id":"c","action":{"type":"execute","name":"m"}}`,
		Row{ActionType: "aap.execute", ToolName: "aap.n", InputsJSON: `{"trace_id":"t","card_id":"c","trace_sha256":"SHA256","inputs":{}}`, OutputsJSON: "{}"}}})
	bundle := build(t, in, testKey("k")).Bytes
	sound := judge(t, bundle, Options{})
	if !sound.Intact {
		t.Fatalf("the bundle is not intact: %+v", sound.Faults)
	}
	signedBy := func(key ed25519.PrivateKey, over string) []byte {
		return fmt.Appendf(nil, "chain_hash:%s\nsignature:%s\n", sound.ChainHash, base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(over))))
	}
	to := func(text []byte) func([]byte) []byte { return func([]byte) []byte { return text } }
	thief := testKey("thief")
	for name, c := range map[string]struct {
		bundle  []byte
		options Options
	}{
		"another chain hash in the manifest": {withFile(t, bundle, manifestFile, func(m []byte) []byte {
			return bytes.Replace(m, []byte(sound.ChainHash), []byte(hexSHA256(nil)), 1)
		}), Options{}},
		"a signature over another log": {withFile(t, bundle, signatureName, to(signedBy(testKey("k"), "other"))), Options{}},
		"a signature by another key": {withFile(t, withFile(t, bundle, signatureName, to(signedBy(thief, sound.ChainHash))),
			keyFile, to(publicKeyFile(publicOf(thief)))), Options{}},
		"another key asked for": {bundle, Options{Keys: []ed25519.PublicKey{publicOf(thief)}}},
		"a key that had ended": {bundle, Options{Signer: func(ed25519.PublicKey, time.Time) error {
			return errors.New("it had ended")
		}}},
		"a row that is not linked": {withFile(t, bundle, logFile, secondRowLinkedAnew), Options{}},
	} {
		r := judge(t, c.bundle, c.options)
		if got := r.Faults[0].Where + ": " + r.Faults[0].Message; len(r.Faults) < 2 || got != differing(0, "tool_name") {
			t.Errorf("%s: %+v", name, r.Faults)
		}
	}
}

// secondRowLinkedAnew changes the second row of a log and hashes it again.
func secondRowLinkedAnew(log []byte) []byte {
	chain, text := NewChain(), []byte(nil)
	for line := range bytes.Lines(log) {
		row, err := ParseRow(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			panic(err)
		}
		if chain.Rows() == 1 {
			row.CostCents++
		}
		if chain.Rows() < 2 {
			chain.Link(&row)
		}
		text = append(row.AppendJSON(text), '\n')
	}
	return text
}

// Rows are matched with their lines by the digest that they state, as far as a hundred lines more
// than there are rows. At most a hundred faults are named.
func TestRowsFindTheirLines(t *testing.T) {
	in := tracedInput([]tracedRow{{"{}", Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: `{"trace_sha256":"SHA256"}`, OutputsJSON: "{}"}}})
	lines := strings.SplitAfter(string(in.Members[0].Data), "\n")
	first, second := lines[0], lines[1]
	others := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("[%d]\n", i)
		}
		return text
	}
	removed := func(from, n int) (faults []string) {
		for i := range n {
			faults = append(faults, fmt.Sprintf("traces.jsonl: the row of line %d was removed", from+i))
		}
		return faults
	}
	for name, c := range map[string]struct {
		traces string
		want   []string
	}{
		"in another order": {second + first, []string{"row 3: moved: its trace is line 1 of traces.jsonl, before those of rows before it"}},
		"one was removed":  {first + others(1) + second, append([]string{"row 3: changed: its error is not that of its trace, line 3 of traces.jsonl"}, removed(2, 1)...)},
		"many were":        {first + second + others(150), append([]string{differing(1, "error")}, removed(3, 99)...)},
		"far behind":       {others(102) + first, append([]string{"row 3: added: no line of traces.jsonl is its trace"}, removed(1, 99)...)},
	} {
		in.Members[0].Data = []byte(c.traces)
		if got := bothName(t, lastChanged(t, in)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A log of keptLog bytes is kept to name its rows. For a longer log no row is named, not even one
// that would have been kept.
func TestRowsOfALongLogAreNotNamed(t *testing.T) {
	changed := lastChanged(t, tracedInput([]tracedRow{{"{}", Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}"}}}))
	var lengths []int64 // up to each row, without line ends
	for _, file := range entries(t, aivstest.Gunzip(t, changed)) {
		if file.Name == logFile {
			length := int64(0)
			for line := range bytes.Lines(file.Data) {
				length += int64(len(line)) - 1
				lengths = append(lengths, length)
			}
		}
	}
	for most, want := range map[int64]string{lengths[3]: "row 2", lengths[3] - 1: "rows 1-3", lengths[2]: "rows 1-3", lengths[1]: "rows 1-3", 1: "rows 1-3"} {
		keepAtMost(t, most)
		if faults := judge(t, changed, Options{}).Faults; len(faults) == 0 || faults[0].Where != want {
			t.Errorf("with a limit of %d bytes and a log of %d: %+v, want %s", most, lengths[3], faults, want)
		}
	}
}

// The second reading begins where the bundle began. A source that cannot seek is read once, and the
// fault names no row.
func TestSecondReadingBeginsWithTheBundle(t *testing.T) {
	changed := lastChanged(t, tracedInput([]tracedRow{{"{}", Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}"}}}))
	after := bytes.NewReader(append([]byte("other data"), changed...))
	if _, err := after.Seek(int64(len("other data")), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source io.Reader
		want   string
	}{
		"behind other data": {after, "row 2"},
		"without Seek":      {io.MultiReader(bytes.NewReader(changed)), "rows 1-3"},
		"Seek that fails":   {unseekable{bytes.NewReader(changed)}, "rows 1-3"},
	} {
		report, err := Verify(c.source, Options{})
		if err != nil || len(report.Faults) == 0 || report.Faults[0].Where != c.want {
			t.Errorf("%s: %+v, error %v, want %s", name, report, err, c.want)
		}
	}
}

// unseekable is a source like a pipe: it has the method and returns an error.
type unseekable struct{ io.Reader }

func (unseekable) Seek(int64, int) (int64, error) { return 0, errors.New("cannot seek") }
