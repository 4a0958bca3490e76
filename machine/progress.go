package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Progress reports how much work each stage of a machine has left, by the state of the broker and
// the stages. 0 means that the stage has made durable everything that follows from the messages
// that were in its stream at the time of the call.
type Progress struct {
	Machine *Machine
	Broker  *stream.Client
}

// Unjudged counts the traces in the stream that the verifier has not stored with
// their verdicts.
func (p *Progress) Unjudged(ctx context.Context) (uint64, error) {
	state, err := p.Broker.StreamState(ctx, stream.Traces)
	if err != nil {
		return 0, err
	}
	progress, err := p.Broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
	return state.LastSequence - min(progress.AckFloor, state.LastSequence), err
}

// Unmeasured counts the traces that drift detection has not applied.
func (p *Progress) Unmeasured(ctx context.Context) (uint64, error) { return p.Broker.DriftBacklog(ctx) }

// UnreadReceipts counts the messages about traces and ends of sessions that the
// exporter has not processed. Every session that is due because of the others is sealed.
func (p *Progress) UnreadReceipts(ctx context.Context) (uint64, error) {
	state, err := p.Broker.StreamState(ctx, stream.Receipts)
	if err != nil {
		return 0, err
	}
	read, err := gauge(p.Machine.Registry(), "plumbline_exporter_receipts_sequence")
	return state.LastSequence - min(uint64(read), state.LastSequence), err
}

// OpenSessions counts the sessions with traces that are in no bundle, once every receipt
// is read.
func (p *Progress) OpenSessions(ctx context.Context) (uint64, error) {
	if left, err := p.UnreadReceipts(ctx); left > 0 || err != nil {
		return left, err
	}
	open, err := gauge(p.Machine.Registry(), "plumbline_exporter_open_sessions")
	return uint64(open), err
}

// gauge returns the value of a metric that only one stage has; 0 before it is set.
func gauge(from prometheus.Gatherer, name string) (float64, error) {
	families, err := from.Gather()
	if err != nil {
		return 0, fmt.Errorf("read the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() == name && len(family.GetMetric()) == 1 {
			return family.GetMetric()[0].GetGauge().GetValue(), nil
		}
	}
	return 0, nil
}

// Poll calls done at once, and then once in each interval, until it returns true or an error.
func Poll(ctx context.Context, every time.Duration, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if end, err := done(ctx); err != nil || end {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
