package drift

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// serve starts a drift process, and returns when it is ready.
func (s *scene) serve(cfg Config) (env *service.Env, process *pipelinetest.Stage) {
	s.t.Helper()
	env = pipelinetest.Env(s.t, "drift")
	env.DrainBudget = cfg.DrainBudget
	process = pipelinetest.Go(s.t, func(ctx context.Context) error { return Serve(ctx, &cfg, env) })
	pipelinetest.Await(s.t, "drift to be ready", func() bool { return env.Health.Reported().Ready })
	return env, process
}

// awaitOwned waits until a process owns n partitions.
func (s *scene) awaitOwned(env *service.Env, n int) {
	s.t.Helper()
	pipelinetest.Await(s.t, "partitions", func() bool { return pipelinetest.Metric(s.t, env, "plumbline_partition_owned", "") == float64(n) })
}

// Two processes share the partitions. A hand-over in order repeats nothing: neither when the second one
// joins, nor when the first one ends.
func TestTwoShareThePartitions(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 7, Agents: 24, Traces: 1500})
	s.cfg.BatchAge = 20 * time.Millisecond
	points := func(env *service.Env) float64 { return pipelinetest.Metric(t, env, "plumbline_drift_points_total", "") }
	awaitPoints := func(of *service.Env) {
		t.Helper()
		before := points(of)
		pipelinetest.Await(t, "points", func() bool { return points(of) > before })
	}
	first, ending := s.serve(s.cfg)
	third := len(s.lines) / 3
	s.publishLines(s.lines[:third])
	awaitPoints(first)
	second, staying := s.serve(s.cfg)
	s.awaitOwned(first, subject.Partitions/2)
	s.awaitOwned(second, subject.Partitions/2)
	s.publishLines(s.lines[third : 2*third])
	awaitPoints(first)
	ending.Stop(t)
	s.awaitOwned(second, subject.Partitions)
	s.publishLines(s.lines[2*third:])
	pipelinetest.Await(t, "every message acknowledged", s.done)
	staying.Stop(t)
	s.check()
	if points(first) == 0 || points(second) == 0 || points(first)+points(second) != float64(s.fleet.Planted().Stored) {
		t.Errorf("%v and %v points of %d traces were stored", points(first), points(second), s.fleet.Planted().Stored)
	}
}

// A process that is cut off, as if it were killed, loses its partitions to another one, which continues
// at the recorded position: the results are those of an uninterrupted fold. What the first one still stores
// when it comes back is the same, it moves no position, and it gets a share again.
func TestCutOffProcessIsReplaced(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 11, Agents: 24, Traces: 1500})
	s.cfg.BatchAge, s.cfg.TakeoverAfter = 20*time.Millisecond, time.Second
	wire := brokertest.NewWire(t, s.Broker.URL())
	behind := s.cfg
	behind.NATS.URL = wire.URL()
	first, cutOff := s.serve(behind)
	second, staying := s.serve(s.cfg)
	s.awaitOwned(first, subject.Partitions/2)
	s.publishLines(s.lines[:len(s.lines)/2])
	pipelinetest.Await(t, "progress", func() bool { return pipelinetest.Metric(t, first, "plumbline_drift_points_total", "") > 0 })
	wire.Cut()
	s.awaitOwned(second, subject.Partitions)
	s.publishLines(s.lines[len(s.lines)/2:])
	pipelinetest.Await(t, "every message acknowledged", s.done)
	before := s.record()
	wire.Mend()
	s.awaitOwned(first, subject.Partitions/2)
	after := s.record()
	for p := range after.Partitions {
		if after.Partitions[p].Done < before.Partitions[p].Done {
			t.Errorf("partition %d went back from %d to %d", p, before.Partitions[p].Done, after.Partitions[p].Done)
		}
	}
	cutOff.Stop(t)
	staying.Stop(t)
	s.check()
}

func (s *scene) record() stream.Shares {
	s.t.Helper()
	shares, err := s.Client.Shares(s.t.Context(), stream.DriftOwners)
	if err != nil {
		s.t.Fatal(err)
	}
	return shares
}

// A process of this version continues where the consumers of an earlier version ended. Those of partitions
// without traces have no ack floor, and hold nobody back.
func TestUpgrade(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 3, Agents: 3, Traces: 60})
	s.publish()
	earlier := map[int]uint64{}
	for p := range subject.Partitions {
		name := stream.DriftConsumer(p)
		progress, err := s.Client.ConsumerProgress(t.Context(), stream.Traces, name)
		if err != nil {
			t.Fatal(err)
		}
		if progress.Pending < 2 {
			continue
		}
		read := s.Broker.Read(stream.Traces, name, 1)
		if err := stream.Acknowledge(t.Context(), read); err != nil {
			t.Fatal(err)
		}
		if progress, err = s.Client.ConsumerProgress(t.Context(), stream.Traces, name); err != nil || progress.AckFloor < read[0].Sequence {
			t.Fatalf("partition %d: %+v, %v", p, progress, err)
		}
		earlier[p] = progress.AckFloor
	}
	s.cfg.BatchAge = time.Hour // it finishes nothing
	env, process := s.serve(s.cfg)
	s.awaitOwned(env, subject.Partitions)
	record := s.record()
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	for p := range record.Partitions {
		want, some := earlier[p]
		if !some {
			want = state.LastSequence
		}
		if got := record.Partitions[p].Done; got != want {
			t.Errorf("partition %d begins at %d, want %d", p, got, want)
		}
	}
	process.Stop(t)
	if len(earlier) == 0 || len(earlier) == subject.Partitions {
		t.Errorf("%d partitions have traces: the test shows nothing", len(earlier))
	}
}

// If the record of owners is removed, the traces are measured again from the first one, with the same results.
func TestRemovedRecord(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 11, Agents: 24, Traces: 1500})
	s.publish()
	measure := func() {
		_, process := s.serve(s.cfg)
		pipelinetest.Await(t, "every trace measured", s.done)
		process.Stop(t)
	}
	measure()
	brokertest.RemoveKey(t, brokertest.Bucket(t, s.Client, stream.Leases), stream.DriftOwners)
	if s.done() {
		t.Fatal("without the record no trace is left to measure")
	}
	measure()
	s.check()
}
