package ownership_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, brokertest.LeftBehind()...) }

// scene is a broker with traces, and the results that workers have stored.
type scene struct {
	t         *testing.T
	broker    *brokertest.Server
	client    *stream.Client
	published uint64

	mu      sync.Mutex
	results map[uint64][]string // by sequence: who stored a result, in order
	first   map[uint64]bool     // results that were stored again and not marked as redelivered
}

func newScene(t *testing.T) *scene {
	broker := brokertest.New(t)
	s := &scene{t: t, broker: broker, client: broker.Connect(), results: map[uint64][]string{}, first: map[uint64]bool{}}
	pipelinetest.EnsureTopology(t, s.client)
	return s
}

// publish publishes a trace of each of many agents, which are spread over all partitions.
func (s *scene) publish() {
	s.t.Helper()
	records := make([]stream.Record, 100)
	for i := range records {
		agent := fmt.Sprint("agent-", i)
		records[i] = pipelinetest.Trace(fmt.Sprintf("tr-%d-%d", s.published, i), agent, "ac", "s", "2026-02-01T00:00:00Z", "search")
	}
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	outcomes, err := committer.Publish(s.t.Context(), records)
	for i := range outcomes {
		err = errors.Join(err, outcomes[i].Err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.published += uint64(len(records))
}

// worker is a stage that stores one result for each message.
type worker struct {
	*scene
	name    string
	late    bool // it stores results after it has lost its partitions
	env     *service.Env
	owned   [subject.Partitions]bool          // of the current term; under mu
	current *ownership.Term                   // the current or last one; under mu
	at      func(step string, through uint64) // called at each step of a batch
	done    func(through uint64, err error)   // called with the outcome of each Done
	place   string                            // of its process
	stage   *pipelinetest.Stage
}

// configure returns how a worker on a connection joins.
func (s *scene) configure(client *stream.Client, w *worker) ownership.Config {
	s.t.Helper()
	w.scene, w.env = s, pipelinetest.Env(s.t, "verifier")
	presence, err := client.Announce(s.t.Context(), stream.Holder{Stage: "verifier", Host: w.name, Place: w.place})
	if err != nil {
		s.t.Fatal(err)
	}
	return ownership.Config{
		Stage: stream.VerifierConsumer, Stream: stream.Traces, Silence: time.Second, Record: brokertest.Bucket(s.t, client, stream.Leases), Presence: presence, Broker: client,
		Earlier: func(ctx context.Context, _ int) (stream.Progress, error) {
			return client.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
		},
		Open: func(ctx context.Context, from uint64) (ownership.Source, error) {
			return client.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Traces, From: from})
		},
		Retry: w.env.Retry, Log: w.env.Log, Metrics: w.env.Metrics,
	}
}

// work starts a worker on a connection.
func (s *scene) work(client *stream.Client, w *worker) *worker {
	s.t.Helper()
	cfg := s.configure(client, w)
	w.stage = pipelinetest.Go(s.t, func(ctx context.Context) error {
		member, err := ownership.Join(ctx, cfg)
		if err != nil {
			return service.UnlessEnded(ctx, err)
		}
		return service.UnlessEnded(ctx, member.Run(ctx, w.run))
	})
	return w
}

func (w *worker) step(name string, through uint64) {
	if w.at != nil {
		w.at(name, through)
	}
}

// run processes small batches until the term ends.
func (w *worker) run(ctx context.Context, term *ownership.Term) error {
	w.mu.Lock()
	w.owned, w.current = term.Owned(), term
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.owned = [subject.Partitions]bool{}
	}()
	for ctx.Err() == nil {
		if err := w.process(ctx, term); err != nil {
			return err
		}
	}
	return nil
}

// process takes one batch through the steps of a stage.
func (w *worker) process(ctx context.Context, term *ownership.Term) error {
	work, stop := w.env.Drain(ctx)
	defer stop()
	var batch []stream.Message
	err := w.env.Retry.Do(ctx, "fetch", func() (err error) {
		batch, err = term.Fetch(ctx, nil, 20, 0, 10*time.Millisecond)
		return err
	})
	if err != nil || len(batch) == 0 {
		return service.UnlessEnded(ctx, err)
	}
	through := batch[len(batch)-1].Sequence
	w.step("fetched", through)
	if err := w.env.Retry.Do(work, "begin", func() error { return term.Begin(work, through) }); err != nil {
		return err
	}
	w.step("begun", through)
	w.store(batch)
	w.step("stored", through)
	err = w.env.Retry.Do(work, "done", func() error { return term.Done(work, through) })
	if w.done != nil {
		w.done(through, err)
	}
	if err == nil {
		w.step("done", through)
	}
	return err
}

func (w *worker) store(batch []stream.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range batch {
		sequence := batch[i].Sequence
		if len(w.results[sequence]) > 0 && !batch[i].Redelivered && !w.late {
			w.first[sequence] = true
		}
		w.results[sequence] = append(w.results[sequence], w.name)
	}
}

func (w *worker) term() *ownership.Term {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

// owns returns how many partitions the worker owns.
func (w *worker) owns() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, owned := range w.owned {
		if owned {
			n++
		}
	}
	return n
}

// floor returns how far the stage is by its record.
func (s *scene) floor() uint64 {
	s.t.Helper()
	progress, err := s.client.ConsumerProgress(s.t.Context(), stream.Traces, stream.VerifierConsumer)
	if err != nil {
		s.t.Fatal(err)
	}
	return progress.AckFloor
}

// finish waits until everything is done, and checks that nothing was lost, and that what was stored
// again was marked as redelivered.
func (s *scene) finish() (storedAgain int) {
	s.t.Helper()
	pipelinetest.Await(s.t, "everything done", func() bool { return s.floor() == s.published })
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence := range s.published {
		by := s.results[sequence+1]
		if len(by) == 0 {
			s.t.Errorf("message %d is done and has no result", sequence+1)
		}
		storedAgain += max(0, len(by)-1)
	}
	for sequence := range s.first {
		s.t.Errorf("message %d was stored by %v and not marked as redelivered", sequence, s.results[sequence])
	}
	return storedAgain
}

// forget begins a new count of who stores a message.
func (s *scene) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence := range s.published {
		s.results[sequence+1] = []string{"before"}
	}
}

// Two processes share the partitions: each has eight, and together they process each message once.
// One that leaves gives its partitions back.
func TestTwoShareThePartitions(t *testing.T) {
	s := newScene(t)
	a := s.work(s.client, &worker{name: "a"})
	pipelinetest.Await(t, "all partitions owned by the first", func() bool { return a.owns() == subject.Partitions })
	s.publish()
	b := s.work(s.broker.Connect(), &worker{name: "b"})
	pipelinetest.Await(t, "half of them owned by each", func() bool { return a.owns() == 8 && b.owns() == 8 })
	s.publish()
	if again := s.finish(); again > 0 {
		t.Errorf("%d messages were processed twice", again)
	}
	by := map[string]int{}
	for sequence := uint64(101); sequence <= s.published; sequence++ {
		by[s.by(sequence)[0]]++
	}
	if by["a"] == 0 || by["b"] == 0 || by["a"]+by["b"] != 100 {
		t.Errorf("of the last 100 messages each processed %v", by)
	}
	a.stage.Stop(t)
	pipelinetest.Await(t, "all partitions owned by the second", func() bool { return b.owns() == subject.Partitions })
	s.publish()
	if again := s.finish(); again > 0 {
		t.Errorf("%d messages were processed twice", again)
	}
}

// A process in another place is refused while one runs, and joins when that one has ended or is gone.
func TestOtherPlaceIsRefused(t *testing.T) {
	s := newScene(t)
	wire := brokertest.NewWire(t, s.broker.URL())
	first, ended := &worker{name: "first", place: "here"}, make(chan error, 1)
	cfg := s.configure(brokertest.Connect(t, stream.Config{URL: wire.URL()}), first)
	go func() {
		member, err := ownership.Join(t.Context(), cfg)
		if err == nil {
			err = member.Run(t.Context(), first.run)
		}
		ended <- err
	}()
	pipelinetest.Await(t, "all partitions owned by the first", func() bool { return first.owns() == subject.Partitions })
	elsewhere := stream.Holder{Stage: "verifier", Place: "there"}
	visit := func(place string) error {
		return ownership.Visit(t.Context(), brokertest.Bucket(t, s.client, stream.Leases), s.client, stream.VerifierConsumer, place)
	}
	if err := visit(elsewhere.Place); !errors.Is(err, ownership.ErrElsewhere) || !strings.Contains(err.Error(), "on host first") {
		t.Errorf("a visit in another place: %v", err)
	}
	if err := visit("here"); err != nil {
		t.Errorf("a visit in the same place: %v", err)
	}
	second := s.configure(s.client, &worker{name: "second", place: elsewhere.Place})
	if _, err := ownership.Join(t.Context(), second); !errors.Is(err, ownership.ErrElsewhere) {
		t.Errorf("joined with %v", err)
	}
	wire.Cut()
	if err := visit(elsewhere.Place); err != nil {
		t.Errorf("a visit when the first is gone: %v", err)
	}
	s.work(s.client, &worker{name: "third", place: elsewhere.Place})
	s.publish()
	s.finish()
	wire.Mend()
	if err := <-ended; !errors.Is(err, ownership.ErrElsewhere) {
		t.Errorf("the first came back and ended with %v", err)
	}
}

// An owner is killed at each step of a batch. Another one takes its partitions over: nothing is
// lost, and it knows what the killed one may have stored.
func TestKilledOwnerIsReplaced(t *testing.T) {
	s := newScene(t)
	survivor := s.work(s.client, &worker{name: "survivor"})
	for _, step := range []string{"fetched", "begun", "stored", "done"} {
		wire := brokertest.NewWire(t, s.broker.URL())
		killed := make(chan struct{})
		var once sync.Once
		victim := &worker{name: step, late: true}
		victim.at = func(at string, _ uint64) {
			if at == step {
				once.Do(func() {
					wire.Cut() // from here on nothing that it does arrives, as if it were killed
					close(killed)
				})
			}
		}
		s.work(brokertest.Connect(t, stream.Config{URL: wire.URL()}), victim)
		victim.env.DrainBudget = time.Second
		pipelinetest.Await(t, "partitions shared", func() bool { return survivor.owns() == 8 && victim.owns() == 8 })
		s.publish()
		<-killed
		pipelinetest.Await(t, "partitions taken over", func() bool { return survivor.owns() == subject.Partitions })
		again := s.finish()
		if step == "stored" && again == 0 {
			t.Error("the fault was not reached: nothing was stored twice")
		}
		wire.Mend() // it finds out that it has lost its partitions, and can end in peace
		victim.stage.Stop(t)
		pipelinetest.Await(t, "partitions given back", func() bool { return survivor.owns() == subject.Partitions })
		s.forget()
	}
}

// An owner that was cut off, or was connected and did not answer, and comes back has lost its
// partitions. What it then stores is what the other one stored, it moves no position, and it gets a
// share again.
func TestStaleOwnerMovesNoPosition(t *testing.T) {
	t.Run("cut off", func(t *testing.T) { comesBack(t, (*brokertest.Wire).Cut, (*brokertest.Wire).Mend) })
	t.Run("silent", func(t *testing.T) { comesBack(t, (*brokertest.Wire).Freeze, (*brokertest.Wire).Thaw) })
}

func comesBack(t *testing.T, goes, returns func(*brokertest.Wire)) {
	s := newScene(t)
	wire := brokertest.NewWire(t, s.broker.URL())
	asleep, wake := make(chan uint64, 1), make(chan struct{})
	outcomes := make(chan error, 1)
	var once sync.Once
	stale := &worker{name: "stale", late: true}
	stale.at = func(step string, through uint64) {
		if step == "begun" {
			once.Do(func() {
				goes(wire)
				asleep <- through
				<-wake
			})
		}
	}
	stale.done = func(_ uint64, err error) {
		select {
		case outcomes <- err:
		default:
		}
	}
	s.work(brokertest.Connect(t, stream.Config{URL: wire.URL()}), stale)
	pipelinetest.Await(t, "all partitions owned", func() bool { return stale.owns() == subject.Partitions })
	s.publish()
	through := <-asleep
	other := s.work(s.client, &worker{name: "other"})
	s.finish() // all by the other one
	s.publish()
	s.finish()
	before := record(t, s.client)
	returns(wire)
	pipelinetest.Await(t, "the stale owner to learn that it is one", func() bool { return errors.Is(stale.term().Confirm(t.Context()), ownership.ErrLost) })
	if err := other.term().Confirm(t.Context()); err != nil {
		t.Errorf("the owner confirms its partitions: %v", err)
	}
	close(wake)
	if err := <-outcomes; !errors.Is(err, ownership.ErrLost) {
		t.Errorf("the stale owner of messages up to %d ended with %v, want ErrLost", through, err)
	}
	pipelinetest.Await(t, "a share for the one that came back", func() bool { return stale.owns() == 8 && other.owns() == 8 })
	after := record(t, s.client)
	for p := range after.Partitions {
		if after.Partitions[p].Done < before.Partitions[p].Done {
			t.Errorf("partition %d went back from %d to %d", p, before.Partitions[p].Done, after.Partitions[p].Done)
		}
	}
	s.publish()
	s.finish()
}

// A stage of this version continues where the durable consumer of an earlier version ended, and
// treats what that may have stored as redelivered. If somebody removes the record, the stage begins
// there again.
func TestUpgradeAndRemovedRecord(t *testing.T) {
	s := newScene(t)
	s.publish()
	old := s.broker.Read(stream.Traces, stream.VerifierConsumer, 60)
	if err := stream.Acknowledge(t.Context(), old[:40]); err != nil {
		t.Fatal(err)
	}
	for _, m := range old[40:] {
		s.results[m.Sequence] = []string{"earlier version"} // stored and not acknowledged
	}
	for _, m := range old[:40] {
		s.results[m.Sequence] = []string{"earlier version"}
	}
	w := s.work(s.client, &worker{name: "new"})
	if again := s.finish(); again != 20 {
		t.Errorf("%d messages were processed again, want the 20 that were not acknowledged", again)
	}
	brokertest.RemoveKey(t, brokertest.Bucket(t, s.client, stream.Leases), stream.VerifierConsumer)
	pipelinetest.Await(t, "the stage to join again", func() bool {
		return w.owns() == subject.Partitions && s.floor() == s.published && len(s.by(100)) == 2
	})
	s.finish()
}

// by returns who processed a message.
func (s *scene) by(sequence uint64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[sequence]
}

func record(t *testing.T, client *stream.Client) (shares stream.Shares) {
	t.Helper()
	shares, err := client.Shares(t.Context(), stream.VerifierConsumer)
	if err != nil {
		t.Fatal(err)
	}
	return shares
}

// interrupted is a record whose first write takes effect while the context of its process ends.
type interrupted struct {
	ownership.Record
	end context.CancelFunc // nil after the first write
}

func (r *interrupted) Update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	revision, err := r.Record.Update(ctx, key, value, last)
	if end := r.end; err == nil && end != nil {
		r.end = nil
		end()
		return 0, context.Canceled
	}
	return revision, err
}

// A process that ends while it joins gives its partitions back, even where its connection stays open.
func TestEndWhileJoining(t *testing.T) {
	s := newScene(t)
	ctx, end := context.WithCancel(t.Context())
	cfg := s.configure(s.client, &worker{name: "a"})
	cfg.Record = &interrupted{Record: cfg.Record, end: end}
	if _, err := ownership.Join(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("joined: %v", err)
	}
	b := s.work(s.client, &worker{name: "b"})
	pipelinetest.Await(t, "the next process to own every partition", func() bool { return b.owns() == subject.Partitions })
}
