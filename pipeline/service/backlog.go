package service

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/obs"
)

// Consumer is one reader of a stream, as the backlog gauge needs it.
type Consumer struct {
	Name    string
	Backlog func(ctx context.Context) (uint64, error) // number of unfinished messages
}

// backlogEvery is how often the backlogs of consumers are read.
const backlogEvery = 5 * time.Second

// ShowBacklogs updates gauge plumbline_backlog_messages until ctx ends. A backlog that cannot be
// read has no value, so a scrape never sees an old one. A scrape does not wait.
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

// showBacklogs reads the backlogs of all consumers in parallel.
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
