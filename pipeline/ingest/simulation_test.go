package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Whatever fails, hangs, is cut or killed between the service and the broker: a line that is
// answered accepted or duplicate is in the stream under its agent's name at that moment. An agent
// that repeats unanswered lines ends up with one message for each line, and with none for a
// refused line.
func TestSimulation(t *testing.T) {
	sim.Run(t, 50, func(t *testing.T, w *sim.World) {
		s := newSimulation(t, w)
		for i := range publishers {
			w.Go(func() { s.publish(fmt.Sprint("agent-", i)) })
		}
		w.Live(s.done, s.process)
		w.Check(s.check)
	})
}

const publishers = 3

// simulation is the stream, the agents, and the answers that they received.
type simulation struct {
	t *testing.T
	w *sim.World

	traces   *sim.Stream
	cards    *sim.Bucket              // none is registered
	stored   map[schema.Digest]string // the agents of accepted lines
	refused  map[schema.Digest]bool
	poisoned map[schema.Digest]bool // another client used their ids
	finished int                    // number of agents that have finished

	mu      sync.Mutex
	serving *serving // nil while no process is serving
}

// serving is one process as agents see it.
type serving struct {
	server  *server
	process *sim.Process
	posts   sync.WaitGroup
}

func newSimulation(t *testing.T, w *sim.World) *simulation {
	t.Helper()
	w.Stream(stream.DeadLetters)
	return &simulation{
		t: t, w: w, traces: w.Stream(stream.Traces), cards: w.Bucket(stream.Cards),
		stored: map[schema.Digest]string{}, refused: map[schema.Digest]bool{}, poisoned: map[schema.Digest]bool{},
	}
}

// process is the part of the stage that accepts traces, assembled as in attend.
func (s *simulation) process(ctx context.Context, p *sim.Process) error {
	network := p.Network()
	client, err := stream.Connect(ctx, stream.Config{URL: "nats://127.0.0.1:4222", Dial: network.Dial, Logger: p.Env.Log})
	if err != nil {
		return err
	}
	defer func() {
		network.Close()
		synctest.Wait() // wait until the client knows, because it would wait for what it has sent
		if err := client.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	cfg := Default()
	server, err := newServer(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &cfg, p.Env)
	if err != nil {
		return err
	}
	committer := client.NewCommitter(stream.CommitConfig{})
	server.traces, server.deadLetters = committer, newDeadLetters(p.Env, client, server.metrics)
	server.cards = cards.New(p.Keys(s.cards), p.Keys(s.cards), cfg.Cards.CacheBytes)
	server.stopping = func() bool { return ctx.Err() != nil }
	work, stop := p.Env.Drain(ctx)
	defer stop()
	closed, kept := make(chan struct{}), make(chan error, 1)
	go func() { kept <- server.deadLetters.run(work, closed) }()
	now := &serving{server: server, process: p}
	s.serve(now)
	<-ctx.Done()
	s.serve(nil)
	if p.Dead() {
		network.Close()
	}
	now.posts.Wait()
	committer.Close()
	close(closed)
	return <-kept
}

func (s *simulation) serve(now *serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = now
}

// post sends lines to the serving process and returns its answer, or nil if there is none.
func (s *simulation) post(body []byte) []byte {
	s.mu.Lock()
	now := s.serving
	if now != nil {
		now.posts.Add(1)
	}
	s.mu.Unlock()
	if now == nil {
		return nil
	}
	defer now.posts.Done()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/v1/traces", bytes.NewReader(body))
	request.Header.Set("Content-Type", typesOfLines[0])
	now.server.handler().ServeHTTP(recorder, request)
	if now.process.Dead() {
		return nil
	}
	return recorder.Body.Bytes()
}

// posted is one line that an agent publishes.
type posted struct {
	record stream.Record
	bad    bool
}

func newPosted(agent, text string, bad bool) posted {
	record := stream.Record{Agent: agent, Data: []byte(text), Digest: schema.DigestOf([]byte(text))}
	return posted{record, bad}
}

// publish acts as an agent: it posts some lines, and repeats those that were neither stored nor
// refused.
func (s *simulation) publish(agent string) {
	dice := s.w.Dice("workload " + agent)
	for post := range 3 + dice.IntN(8) {
		time.Sleep(time.Duration(dice.Int64N(int64(3 * time.Second))))
		var open []posted
		for i := range 1 + dice.IntN(6) {
			id := fmt.Sprintf("tr-%s-%d-%d", agent, post, i)
			one := newPosted(agent, trace(agent, id), false)
			switch dice.IntN(10) {
			case 0:
				one = newPosted(agent, fmt.Sprintf(`{"trace_id":%q}`, id), true)
			case 1:
				s.poison(one.record)
			}
			open = append(open, one)
		}
		for len(open) > 0 && !s.w.Failed() {
			if open = s.send(open); len(open) > 0 {
				time.Sleep(time.Second + time.Duration(dice.Int64N(int64(time.Second))))
			}
		}
	}
	s.w.Within(func() { s.finished++ })
}

// poison publishes another message under the id of a trace that will follow.
func (s *simulation) poison(record stream.Record) {
	token := subject.Token("attacker")
	s.traces.Publish(sim.Stored{
		Subject: fmt.Sprintf("traces.%d.%s", subject.Partition("attacker"), token), Agent: "attacker", ID: record.Digest.String(), Data: []byte("{}"),
	})
	s.w.Within(func() { s.poisoned[record.Digest] = true })
}

// send posts lines and returns those that must be sent again.
func (s *simulation) send(lines []posted) (again []posted) {
	var body []byte
	for _, l := range lines {
		body = append(append(body, l.record.Data...), '\n')
	}
	answer := s.post(body)
	statuses := map[int]string{}
	for text := range bytes.Lines(answer) {
		var outcome struct {
			Line   int
			Status string
		}
		if err := json.Unmarshal(text, &outcome); err != nil {
			s.t.Errorf("answer %q: %v", text, err)
		}
		statuses[outcome.Line] = outcome.Status
	}
	s.w.Within(func() {
		for i, l := range lines {
			if status := statuses[i+1]; !s.record(l, status) {
				again = append(again, l)
			}
		}
	})
	return again
}

// record notes the answer for a line, and reports whether it is final.
func (s *simulation) record(l posted, status string) bool {
	switch status {
	case accepted.String(), duplicate.String():
		if n := s.count(l.record); n == 0 || l.bad {
			s.w.Wrong("line %s is answered %s and in the stream %d times", l.record.Digest, status, n)
		}
		s.stored[l.record.Digest] = l.record.Agent
	case refused.String():
		if !l.bad {
			s.w.Wrong("line %s is refused", l.record.Digest)
		}
		s.refused[l.record.Digest] = true
	default:
		return false
	}
	return true
}

// count returns how often the stream has a record under its agent's name.
func (s *simulation) count(record stream.Record) (n int) {
	for i := range s.traces.Stored {
		if m := &s.traces.Stored[i]; m.Agent == record.Agent && bytes.Equal(m.Data, record.Data) {
			n++
		}
	}
	return n
}

func (s *simulation) done() bool { return s.finished == publishers }

// check verifies that the stream has every line once, and otherwise only what others published.
func (s *simulation) check() {
	found := map[schema.Digest]int{}
	for i := range s.traces.Stored {
		m := &s.traces.Stored[i]
		digest := schema.DigestOf(m.Data)
		found[digest]++
		if m.Agent != "attacker" && (s.stored[digest] != m.Agent || s.refused[digest]) {
			s.w.Wrong("message %d of agent %s was never accepted", i+1, m.Agent)
		}
	}
	for digest := range s.stored {
		if n := found[digest]; n != 1 && (n == 0 || !s.poisoned[digest]) {
			s.w.Wrong("line %s is in the stream %d times", digest, n)
		}
	}
}
