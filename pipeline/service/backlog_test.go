package service

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

// A backlog that cannot be read has no value, in particular not an old one. A slow answer delays
// neither the other backlogs nor a scrape.
func TestBacklogsAreShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		var away atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := env.ShowBacklogs(ctx,
				Consumer{"one", func(context.Context) (uint64, error) { return 7, nil }},
				Consumer{"two", func(context.Context) (uint64, error) {
					if away.Load() {
						return 0, errors.New("the broker is away")
					}
					return 9, nil
				}},
				Consumer{"hung", func(ctx context.Context) (uint64, error) { <-ctx.Done(); return 0, ctx.Err() }},
			); err != nil {
				t.Error(err)
			}
		}()
		expect := func(when string, want map[string]float64) {
			t.Helper()
			synctest.Wait()
			got := backlogs(t, env)
			if len(got) != len(want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
			for name, n := range want {
				if got[name] != n {
					t.Errorf("%s: %s has %v, want %v", when, name, got[name], n)
				}
			}
		}
		expect("at once", map[string]float64{"one": 7, "two": 9})
		away.Store(true)
		time.Sleep(backlogEvery + obs.AnswerWithin)
		expect("one unknown", map[string]float64{"one": 7})
		away.Store(false)
		time.Sleep(backlogEvery + obs.AnswerWithin)
		expect("known again", map[string]float64{"one": 7, "two": 9})
		cancel()
		synctest.Wait()
	})
}

// backlogs returns plumbline_backlog_messages by consumer.
func backlogs(t *testing.T, env *Env) map[string]float64 {
	t.Helper()
	families, err := env.Gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "plumbline_backlog_messages" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "consumer" {
					found[label.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	return found
}
