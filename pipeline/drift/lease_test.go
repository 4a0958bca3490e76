package drift

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// serve starts the stage (see pipelinetest.Deploy).
func (s *scene) serve(cfg Config) (stop context.CancelFunc, ended chan error) {
	s.t.Helper()
	return pipelinetest.Deploy(s.t, "drift", func(ctx context.Context, env *service.Env) error { return Serve(ctx, &cfg, env) })
}

// A second drift stage is refused, with an error that names the first. The first is not
// disturbed. When it has ended, the next one starts.
func TestSecondDriftIsRefused(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 3, Agents: 12, Traces: 600})
	s.publish()
	stop, first := s.serve(s.cfg)
	pipelinetest.NamesThisProcess(t, Serve(t.Context(), &s.cfg, pipelinetest.Env(t, "drift")), stream.ErrLeaseHeld)
	pipelinetest.Await(t, "every message acknowledged", s.done)
	stop()
	if err := <-first; err != nil {
		t.Error(err)
	}
	s.check()
	stop, next := s.serve(s.cfg)
	stop()
	if err := <-next; err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// A drift stage that was disconnected while another one took over ends by itself, and does not
// disturb the other.
func TestDriftThatWasCutOffEnds(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 11, Agents: 12, Traces: 600})
	wire := brokertest.NewWire(t, s.Broker.URL())
	cutOff := s.cfg
	cutOff.NATS.URL = wire.URL()
	_, before := s.serve(cutOff)
	wire.Cut()
	stop, now := s.serve(s.cfg)
	s.publish()
	wire.Mend()
	pipelinetest.NamesThisProcess(t, <-before, stream.ErrLeaseLost)
	pipelinetest.Await(t, "every message acknowledged", s.done)
	stop()
	if err := <-now; err != nil {
		t.Error(err)
	}
	s.check()
}

// A drift stage that loses the lease neither stores nor acks what it has folded and not stored.
func TestWithoutTheLeaseNothingIsStored(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 3, Agents: 12, Traces: 600})
	s.cfg.BatchAge = time.Hour
	s.publish()
	process := s.stage(s.connect())
	process.now = func() time.Time { return time.Now().Add(time.Hour) }
	lease, err := s.Client.Acquire(t.Context(), stream.Holder{Stage: "drift"})
	if err != nil {
		t.Fatal(err)
	}
	process.confirm = lease.Confirm
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- process.run(ctx) }()
	pipelinetest.Await(t, "every trace folded", func() bool { return process.inHand() == s.fleet.Planted().Lines-s.deduplicated() })
	lease.Release(t.Context())
	if _, err = s.Client.Acquire(t.Context(), stream.Holder{Stage: "drift", PID: os.Getpid(), Host: "b"}); err != nil {
		t.Fatal(err)
	}
	stop()
	pipelinetest.NamesThisProcess(t, <-ended, stream.ErrLeaseLost)
	if lines := s.stored(); len(lines) > 0 {
		t.Errorf("%d points, baselines and alerts are stored", len(lines))
	}
	if n := s.unacknowledged(); n != s.fleet.Planted().Lines-s.deduplicated() {
		t.Errorf("all but %d messages are acknowledged", n)
	}
	s.cfg.BatchAge = 20 * time.Millisecond
	s.finish()
	s.check()
}

// unacknowledged returns how many messages the consumers have not acked.
func (s *scene) unacknowledged() (n int) {
	s.t.Helper()
	for p := range subject.Partitions {
		progress, err := s.Client.ConsumerProgress(s.t.Context(), stream.Traces, stream.DriftConsumer(p))
		if err != nil {
			s.t.Fatal(err)
		}
		n += progress.Unacked + int(progress.Pending)
	}
	return n
}
