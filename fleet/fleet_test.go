package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// demo returns the fleet of the demo with a seed: 1 unless told otherwise. Tests share it and never modify it.
func demo(seed uint64) *Fleet {
	if planned[seed] == nil {
		planned[seed] = New(Config{Seed: seed, Start: start})
	}
	return planned[seed]
}

// planned has the fleets of demo by their seed.
var planned = map[uint64]*Fleet{}

// judged returns the fleets that are judged completely: small ones, and the demo's.
// Tests share the fleets and the results of publish for them, and never modify either.
var judged = sync.OnceValue(func() []*Fleet { return append([]*Fleet{demo(1)}, small()...) })

// small returns fleets of other sizes, with many or few plants for their size.
var small = sync.OnceValue(func() []*Fleet {
	return []*Fleet{
		New(Config{Seed: 1, Start: start, Agents: 40, Traces: 3000}),
		New(Config{Seed: 2, Start: start, Agents: 200, Traces: 2000}),
		New(Config{Seed: 3, Start: start, Agents: 10, Traces: 400}),
		New(Config{Seed: 4, Start: start, Agents: 10, Traces: 400}),
		New(Config{Seed: 5, Start: start, Agents: 10, Traces: 400}),
	}
})

func TestLinesAreAdmittedOrRefusedAsPlanted(t *testing.T) {
	for _, f := range small() {
		planted := f.Planted()
		refused := map[int]PlantedRefusal{}
		for _, r := range planted.Refused {
			refused[r.Line] = r
		}
		lines, digests, ids := publish(f), map[schema.Digest]bool{}, map[string]bool{}
		for n, line := range lines {
			if want, broken := refused[n]; broken {
				var refusal *schema.Refusal
				if !errors.As(line.err, &refusal) || refusal.Reason != want.Reason || line.Agent != want.AgentID {
					t.Errorf("line %d of %s: %v, want a refusal as %s of %s", n, line.Agent, line.err, want.Reason, want.AgentID)
				}
			} else if line.err != nil {
				t.Fatalf("line %d: %v\n%s", n, line.err, line.Raw)
			} else {
				digests[line.trace.Digest], ids[line.trace.TraceID] = true, true
			}
			if bytes.ContainsAny(line.Raw, "\r\n") {
				t.Errorf("line %d has a line break", n)
			}
		}
		if n := len(lines); n != planted.Lines || len(digests) != planted.Stored || planted.Stored != f.cfg.Traces {
			t.Errorf("%d lines with %d contents, planted %d and %d", n, len(digests), planted.Lines, planted.Stored)
		}
		if len(ids) != planted.Stored-len(planted.Conflicts) {
			t.Errorf("%d trace ids, want %d", len(ids), planted.Stored-len(planted.Conflicts))
		}
	}
}

func TestEqualConfigsGiveEqualFleets(t *testing.T) {
	if f := demo(7); f.cfg.Agents != DefaultAgents || f.planted.Stored != DefaultTraces {
		t.Errorf("%d agents and %d traces by default", f.cfg.Agents, f.planted.Stored)
	}
	cfg := Config{Seed: 7, Start: start, Traces: 1000}
	a, b := New(cfg), New(cfg)
	var lines [][]byte
	for line := range a.Lines() {
		lines = append(lines, line.Raw)
	}
	n := 0
	for line := range b.Lines() {
		if !bytes.Equal(line.Raw, lines[n]) {
			t.Fatalf("line %d differs:\n%s\n%s", n, lines[n], line.Raw)
		}
		n++
	}
	if n != len(lines) {
		t.Errorf("%d lines, want %d", n, len(lines))
	}
	if !equalJSON(t, a.Planted(), b.Planted()) || !equalJSON(t, a.Cards(), b.Cards()) {
		t.Error("what is planted, or the cards, differ")
	}
	cfg.Start = start.Add(time.Hour)
	other := New(cfg)
	if a.traceID(0) == other.traceID(0) || a.agents[0].card.id == other.agents[0].card.id {
		t.Error("another start must give other ids: both runs may meet in one store")
	}
	n = 0
	for line := range other.Lines() { // ids and times have constant length
		if len(line.Raw) != len(lines[n]) {
			t.Fatalf("planned for another start, line %d differs:\n%s\n%s", n, lines[n], line.Raw)
		}
		n++
	}
	if got, want := other.planted.Sessions, a.planted.Sessions; got != want {
		t.Errorf("planned for another start, there are %d sessions, not %d", got, want)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	left, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	right, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(left, right)
}

func TestSmallFleets(t *testing.T) {
	for _, cfg := range []Config{{Agents: 1, Traces: 1}, {Agents: 5, Traces: 3}, {Agents: 10, Traces: 40}, {Agents: 12, Traces: 700}} {
		cfg.Start = start
		f := New(cfg)
		n := 0
		for line := range f.Lines() {
			if _, err := schema.Admit(line.Agent, line.Raw); err != nil && f.lines[n].kind != broken {
				t.Errorf("%+v line %d: error %v", cfg, n, err)
			}
			n++
		}
		if p := f.Planted(); p.Stored != cfg.Traces || p.Lines != n {
			t.Errorf("%+v: %d lines, planted %d lines and %d stored", cfg, n, p.Lines, p.Stored)
		}
	}
}

func BenchmarkLines(b *testing.B) {
	f := demo(1)
	b.ReportAllocs()
	total := 0
	for b.Loop() {
		for line := range f.Lines() {
			total += len(line.Raw)
		}
	}
	perLine := float64(b.Elapsed().Nanoseconds()) / float64(b.N*f.planted.Lines)
	b.ReportMetric(perLine, "ns/trace")
	b.ReportMetric(float64(total)/float64(b.N*f.planted.Lines), "B/trace")
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Config{Seed: 1, Start: start})
	}
}
