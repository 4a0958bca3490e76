package run

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/obs"
)

// Consumer is one reader of a stream, for the gauge of its backlog.
type Consumer struct {
	Name    string
	Backlog func(ctx context.Context) (uint64, error) // messages that it has not finished
}

// backlogEvery is how often consumers are asked for their backlogs.
const backlogEvery = 5 * time.Second

// ShowBacklogs keeps gauge plumbline_backlog_messages until ctx ends. What cannot be
// found out has no value: a scrape sees no old one, and waits for nobody.
func (e *Env) ShowBacklogs(ctx context.Context, consumers ...Consumer) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_backlog_messages",
		Help: "Messages that a consumer has not finished; none while it cannot be found out.",
	}, []string{"consumer"})
	if err := e.Metrics.Register(gauge); err != nil {
		return fmt.Errorf("metrics of backlogs: %w", err)
	}
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	for {
		showBacklogs(ctx, gauge, consumers)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showBacklogs asks all consumers at the same time.
func showBacklogs(ctx context.Context, gauge *prometheus.GaugeVec, consumers []Consumer) {
	ctx, cancel := context.WithTimeout(ctx, obs.AnswerWithin)
	defer cancel()
	var group errgroup.Group
	for _, c := range consumers {
		group.Go(func() error {
			backlog, err := c.Backlog(ctx)
			if err != nil {
				gauge.DeleteLabelValues(c.Name)
				return nil // the gauge says that it is unknown, readiness says why
			}
			gauge.WithLabelValues(c.Name).Set(float64(backlog))
			return nil
		})
	}
	_ = group.Wait() // no consumer returns an error
}
