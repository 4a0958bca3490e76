// Package rest reports when a machine has no work left: how much each stage has
// left to do, by the state of the broker and the stages. It does not wait.
//
// Invariant: 0 left means that the stage has made durable everything that follows from
// the messages that were in its stream at the time of the call.
package rest

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Watch reads the state of one machine.
type Watch struct {
	Machine *machine.Machine
	Broker  *stream.Client
}

// Unjudged counts the traces in the stream that the verifier has not stored with
// their verdicts.
func (w *Watch) Unjudged(ctx context.Context) (uint64, error) {
	state, err := w.Broker.StreamState(ctx, stream.Traces)
	if err != nil {
		return 0, err
	}
	progress, err := w.Broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
	return beyond(state.LastSequence, progress.AckFloor), err
}

// Unwatched counts the traces that drift detection has not applied.
func (w *Watch) Unwatched(ctx context.Context) (left uint64, err error) {
	for partition := range subject.Partitions {
		progress, err := w.Broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(partition))
		if err != nil {
			return 0, err
		}
		left += progress.Pending + uint64(progress.Unacked)
	}
	return left, nil
}

// Unfolded counts the messages about traces and ends of sessions that the
// exporter has not processed. Every session that is due because of the others is sealed.
func (w *Watch) Unfolded(ctx context.Context) (uint64, error) {
	state, err := w.Broker.StreamState(ctx, stream.Receipts)
	if err != nil {
		return 0, err
	}
	folded, err := gauge(w.Machine.Registry(), "plumbline_exporter_receipts_sequence")
	return beyond(state.LastSequence, uint64(folded)), err
}

// OpenSessions counts the sessions with traces that are in no bundle, once nothing is
// unfolded.
func (w *Watch) OpenSessions(ctx context.Context) (uint64, error) {
	if left, err := w.Unfolded(ctx); left > 0 || err != nil {
		return left, err
	}
	open, err := gauge(w.Machine.Registry(), "plumbline_exporter_open_sessions")
	return uint64(open), err
}

func beyond(last, done uint64) uint64 { return last - min(done, last) }

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
