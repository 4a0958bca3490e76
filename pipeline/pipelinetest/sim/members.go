package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Members are the processes of a stage that share the partitions of a stream, and their record.
type Members struct {
	Finished func(sequence uint64) // called for each message that the record newly calls done

	stage  string
	world  *World
	stream *Stream
	leases *Bucket
	shares stream.Shares // the newest record

	mu      sync.Mutex
	present map[string]context.Context // the processes that have joined, by id
}

// Members returns the members of a stage, which has none yet.
func (w *World) Members(stage string, shared *Stream) *Members {
	m := &Members{stage: stage, world: w, stream: shared, leases: w.Bucket(stream.Leases), present: map[string]context.Context{}}
	m.leases.Written = m.written
	return m
}

// Owners returns the configuration with which a process joins that lives as long as ctx, without
// Earlier.
func (m *Members) Owners(ctx context.Context, p *Process, silence time.Duration) ownership.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	present := &presence{Members: m, process: p, self: stream.Holder{ID: fmt.Sprint("v", len(m.present)), Stage: m.stage}}
	m.present[present.self.ID] = ctx
	return ownership.Config{
		Stage: m.stage, Stream: m.stream.Name, Silence: silence, Record: p.Keys(m.leases), Presence: present, Broker: p.Broker(),
		Open:  func(ctx context.Context, from uint64) (ownership.Source, error) { return p.Read(ctx, m.stream, from) },
		Retry: p.Env.Retry, Log: p.Env.Log, Metrics: p.Env.Metrics,
	}
}

// Done reports whether the record calls every message done.
func (m *Members) Done() bool { return m.shares.Floor() == m.stream.last() }

// written requires that no partition goes back, and calls Finished.
func (m *Members) written(_ string, value []byte) {
	before := m.shares
	m.shares = stream.Shares{}
	if err := json.Unmarshal(value, &m.shares); err != nil {
		m.world.Wrong("read the record of partitions: %v", err)
	}
	for p := range m.shares.Partitions {
		from, to := before.Partitions[p].Done, m.shares.Partitions[p].Done
		if to < from || m.shares.Partitions[p].Epoch < before.Partitions[p].Epoch {
			m.world.Wrong("partition %d goes back from %+v to %+v", p, before.Partitions[p], m.shares.Partitions[p])
		}
		for sequence := from + 1; sequence <= to; sequence++ {
			if m.stream.At(sequence).Partition == p {
				m.Finished(sequence)
			}
		}
	}
}

// presence asks simulated processes whether they are there. A question may fail or be lost: then
// the process counts as silent.
type presence struct {
	*Members
	process *Process
	self    stream.Holder
}

func (p *presence) Holder() stream.Holder { return p.self }
func (p *presence) End()                  {}

func (p *presence) Reach(ctx context.Context, other *stream.Holder) error {
	err := p.process.Do(ctx, Operation{Name: "ask", Key: other.ID}, func() error { return nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case p.present[other.ID].Err() != nil:
		return stream.ErrGone
	case err != nil:
		return stream.ErrLeaseSilent
	}
	return nil
}
