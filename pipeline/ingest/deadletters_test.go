package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// outlet stores letters, except one that it never accepts.
type outlet struct {
	kept []string
	bad  string
}

func (o *outlet) DeadLetters(_ context.Context, letters []wire.DeadLetter) error {
	for _, letter := range letters {
		if string(letter.Data) == o.bad {
			return errors.New("never")
		}
	}
	for _, letter := range letters {
		o.kept = append(o.kept, string(letter.Data))
	}
	return nil
}

func testDeadLetters(outlet Outlet) *deadLetters {
	env := service.NewEnv(stageName, "1", slog.New(slog.DiscardHandler), obs.NewRegistry("1"), new(obs.Health))
	return newDeadLetters(env, outlet, newMetrics(env.Metrics))
}

func (d *deadLetters) droppedSoFar(t *testing.T) int {
	t.Helper()
	var metric dto.Metric
	if err := d.metrics.dropped.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return int(metric.GetCounter().GetValue())
}

func TestDeadLettersAboveTheLimitAreDropped(t *testing.T) {
	l := testDeadLetters(&outlet{})
	for range maxDeadLetters + 3 {
		l.add(wire.DeadLetter{Data: []byte("x")})
	}
	if got := l.droppedSoFar(t); got != 3 || len(l.queue) != maxDeadLetters {
		t.Errorf("%d dropped, %d queued", got, len(l.queue))
	}
	l = testDeadLetters(&outlet{})
	for range 4 {
		l.add(wire.DeadLetter{Data: make([]byte, maxDeadLetterBytes/2)})
	}
	if got := l.droppedSoFar(t); got != 2 || len(l.queue) != 2 {
		t.Errorf("by size: %d dropped, %d queued", got, len(l.queue))
	}
}

// TestQueuedDeadLettersArePublishedAtTheEnd checks that closing publishes what is queued. A letter that the
// broker never accepts does not affect the others.
func TestQueuedDeadLettersArePublishedAtTheEnd(t *testing.T) {
	broker := &outlet{bad: "7"}
	l := testDeadLetters(broker)
	for i := range 20 {
		l.add(wire.DeadLetter{Data: []byte(fmt.Sprint(i))})
	}
	closed := make(chan struct{})
	close(closed)
	if err := l.run(t.Context(), closed); err != nil {
		t.Fatal(err)
	}
	if len(broker.kept) != 19 || l.droppedSoFar(t) != 1 || l.held.Load() != 0 {
		t.Errorf("kept %v, dropped %d, held %d bytes", broker.kept, l.droppedSoFar(t), l.held.Load())
	}
}
