package exporter

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// world is stream RECEIPTS with two exporters that read it.
type world struct {
	env      *service.Env
	cfg      *Config
	created  time.Time
	traces   []schema.Receipt // with the sequences 1, 2, …
	received []bool
	repeats  bool
	log      []stream.Message
	replicas [2]*replica
}

// replica is an exporter without database or files, with what it did.
type replica struct {
	*exporter
	kept map[string][]byte   // bucket seals
	told map[string][]string // by session
}

func newWorld(t *rapid.T, env *service.Env, dir string) *world {
	cfg := Default()
	cfg.BundleDir, cfg.RotateBytes = dir, rapid.SampledFrom([]int64{5, 1000}).Draw(t, "bytes")
	cfg.Idle, cfg.RotateAge = 5*time.Minute, 11*time.Minute
	if rapid.Bool().Draw(t, "scheduled") {
		cfg.Schedule = []string{"*/7 * * * *"}
	}
	w := &world{env: env, cfg: &cfg, created: time.Now().Add(24 * time.Hour), repeats: rapid.Bool().Draw(t, "repeats")}
	for i := range rapid.IntRange(1, 60).Draw(t, "traces") {
		r := schema.Receipt{AgentID: "a", SessionID: rapid.SampledFrom([]string{"s", "s", "s", "t"}).Draw(t, "session"), Sequence: uint64(i + 1)}
		r.Digest = schema.DigestOf(fmt.Append(nil, i))
		r.EventTime = w.created.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "event")) * time.Second).UTC()
		r.Bytes, r.End = rapid.IntRange(1, 7).Draw(t, "size"), rapid.IntRange(0, 20).Draw(t, "end") == 0
		w.traces = append(w.traces, r)
	}
	w.received = make([]bool, len(w.traces))
	w.begin()
	w.restartAnyhow(t)
	return w
}

func (w *world) begin() {
	for i := range w.replicas {
		w.replicas[i] = &replica{kept: map[string][]byte{}, told: map[string][]string{}, exporter: &exporter{index: newIndex(0)}}
	}
}

// start starts an exporter at its checkpoint.
func (w *world) start(r *replica, keep int) {
	position := r.index.checkpoint() - 1
	schedules, _ := parseSchedules("schedule", w.cfg.Schedule)
	r.exporter = &exporter{
		env: w.env, cfg: w.cfg, seals: r, metrics: newMetrics(prometheus.NewRegistry()), clock: newClock(time.Now), index: newIndex(keep), schedules: schedules,
		receiptsFrom: func(_ context.Context, from uint64) (Reader, error) {
			return &rereader{log: w.log, at: int(from) - 1}, nil
		},
	}
	r.index.position, r.index.asked = position, time.Now()
	for i := range w.log {
		r.fold(&w.log[i])
	}
}

// restart restarts both exporters; one of them keeps few receipts.
func (w *world) restart(rotate, keep int) {
	w.cfg.RotateRows = rotate
	w.start(w.replicas[0], math.MaxInt/2)
	w.start(w.replicas[1], keep)
}

// restartAnyhow restarts both, possibly with other bounds than before.
func (w *world) restartAnyhow(t *rapid.T) {
	rotate := rapid.IntRange(1, 6).Draw(t, "rows")
	w.restart(rotate, rotate+rapid.IntRange(0, 6).Draw(t, "keep"))
}

func (w *world) each(do func(*replica)) {
	for _, r := range w.replicas {
		do(r)
	}
}

// compare requires that both exporters did the same.
func (w *world) compare(t *rapid.T) {
	all, few := w.replicas[0], w.replicas[1]
	for session, want := range all.told {
		got := few.told[session]
		for i := range max(len(got), len(want)) {
			if i >= min(len(got), len(want)) || got[i] != want[i] {
				t.Fatalf("session %s: from part %d on it did\n%s\nwant\n%s", session, i+1,
					strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
			}
		}
	}
	if all.index.checkpoint() != few.index.checkpoint() || len(all.index.sessions) != len(few.index.sessions) {
		t.Fatalf("checkpoint %d, %d sessions; want %d, %d", few.index.checkpoint(), len(few.index.sessions),
			all.index.checkpoint(), len(all.index.sessions))
	}
	for _, s := range few.index.sessions {
		if len(s.receipts) > s.keep+s.keep/4 {
			t.Fatalf("%d receipts are kept, want %d and a quarter at most", len(s.receipts), s.keep)
		}
	}
}

// receive appends a message with the receipts of some traces.
func (w *world) receive(t *rapid.T) {
	var some []schema.Receipt
	first := w.floor()
	for range rapid.IntRange(1, 12).Draw(t, "receipts") {
		i := int(first) + rapid.IntRange(-6, 20).Draw(t, "which")
		if i < 0 || i >= len(w.traces) || w.received[i] && !w.repeats {
			continue
		}
		w.received[i] = true
		some = append(some, w.traces[i])
	}
	if len(some) > 0 {
		w.append(message(some))
	}
}

// receiveAll appends a message with all traces that have no receipt yet.
func (w *world) receiveAll() {
	var rest []schema.Receipt
	for i := range w.traces {
		if !w.received[i] {
			w.received[i], rest = true, append(rest, w.traces[i])
		}
	}
	if len(rest) > 0 {
		w.append(message(rest))
	}
}

func (w *world) request(t *rapid.T) {
	w.append(fmt.Appendf(nil, `{"end":{"agent_id":"a","session_id":"s","through_sequence":%d}}`,
		rapid.IntRange(0, len(w.traces)).Draw(t, "through")))
}

func (w *world) append(data []byte) {
	n := uint64(len(w.log) + 1)
	w.log = append(w.log, stream.Message{Data: data, Sequence: n, Received: w.created.Add(time.Duration(n) * time.Minute)})
	w.each(func(r *replica) { r.fold(&w.log[n-1]) })
}

// message returns a message of stream RECEIPTS.
func message(receipts []schema.Receipt) []byte {
	list := make([]map[string]any, len(receipts))
	for i, r := range receipts {
		list[i] = map[string]any{"agent_id": r.AgentID, "session_id": r.SessionID, "sequence": r.Sequence, "digest": r.Digest.String(),
			"event_time": r.EventTime.Format(time.RFC3339Nano), "bytes": r.Bytes, "end": r.End}
	}
	data, err := json.Marshal(map[string]any{"receipts": list})
	if err != nil {
		panic(err)
	}
	return data
}

// floor returns the sequence up to which every trace has a receipt.
func (w *world) floor() uint64 {
	n := slices.Index(w.received, false)
	if n < 0 {
		n = len(w.received)
	}
	return uint64(n)
}

// sealAll seals until nothing is due.
func (r *replica) sealAll(t rapid.TB, floor uint64, repeats bool) {
	for round := r.round(t, floor); len(round) > 0 || r.behind; round = r.round(t, floor) {
		for _, j := range round {
			row, plan := j.sessionRow(time.Time{}), &j.part.Plan
			if repeats {
				row.Traces = 0 // repeated ones among those left out are counted each time
			}
			told := fmt.Sprintf("part %d (%d, %d] %s last %v of %d %v %d–%d %d–%d:", plan.Part, plan.After, plan.Cut, plan.Reason, plan.LastPart,
				row.Traces, row.Ended, row.FirstSequence, row.LastSequence, row.FirstEvent.Unix(), row.LastEvent.Unix())
			for _, receipt := range j.receipts() {
				told += fmt.Sprintf(" %.4s", receipt.Digest)
			}
			r.told[j.part.SessionID] = append(r.told[j.part.SessionID], told)
			plan.State, plan.SHA256 = seal.Sealed, told
			r.put(t, j)
			r.release(j.session, plan.Cut)
		}
	}
}

// planAll writes the plans of all due sessions, and does nothing further.
func (r *replica) planAll(t rapid.TB, floor uint64) {
	for planned := true; planned || r.behind; {
		planned = false
		for _, j := range r.round(t, floor) {
			planned = planned || !j.fixed
			r.put(t, j)
		}
	}
}

// round processes the due sessions up to their plans.
func (r *replica) round(t rapid.TB, floor uint64) (jobs []*job) {
	r.behind = false
	if err := r.reread(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.names = map[string]store.SessionKey{}
	for _, g := range r.due(floor) {
		planned, err := r.plan(context.Background(), g, floor)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, planned...)
	}
	return jobs
}

// put stores the plan of a job in the bucket.
func (r *replica) put(t rapid.TB, j *job) {
	value, err := j.part.Plan.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.kept[seal.Key(j.part.AgentID, j.part.SessionID)] = value
}

func (r *replica) GetNewest(_ context.Context, key string) (value []byte, revision uint64, err error) {
	value, ok := r.kept[key]
	if !ok {
		return nil, 0, stream.ErrNotFound
	}
	return value, 1, nil
}

func (r *replica) Put(context.Context, string, []byte) (uint64, error) {
	panic("no checkpoint is kept")
}

func (r *replica) WriteAll(context.Context, []stream.Write) ([]uint64, error) {
	panic("put keeps the plans")
}

// rereader reads the log, few messages at a time.
type rereader struct {
	log []stream.Message
	at  int
}

func (r *rereader) Fetch(_ context.Context, into []stream.Message, _, _ int, _ time.Duration) ([]stream.Message, error) {
	next := min(r.at+2, len(r.log))
	into = append(into, r.log[r.at:next]...)
	r.at = next
	return into, nil
}

func (r *rereader) Close() {}
