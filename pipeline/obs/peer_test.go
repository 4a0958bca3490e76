package obs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

// A component that two stages need is up if both report it as up.
func TestComponentOfTwoStages(t *testing.T) {
	health := new(obs.Health)
	first, second := health.Component("database", "drift"), health.Component("database", "verifier")
	first.Up()
	second.Down("disk full")
	first.Up()
	if state := health.Reported(); state.Ready || state.Down["database"] != "disk full" {
		t.Errorf("one down: %+v", state)
	}
	first.Down("read-only")
	if state := health.Reported(); state.Down["database"] != "read-only; disk full" {
		t.Errorf("both down: %+v", state)
	}
	first.Down("disk full")
	if state := health.Reported(); state.Down["database"] != "disk full" {
		t.Errorf("both down for one reason: %+v", state)
	}
}

// Peers are asked at each read of readiness.
func TestPeersAreAsked(t *testing.T) {
	health := new(obs.Health)
	component := health.Component("database", "verifier")
	var fault error
	component.Ask(func(context.Context) error { return fault })
	component.Up()
	if state := health.Readiness(); !state.Ready {
		t.Errorf("it answers: %+v", state)
	}
	fault = errors.New("connection refused")
	if state := health.Readiness(); state.Ready || state.Down["database"] != "connection refused" {
		t.Errorf("it refuses: %+v", state)
	}
	fault = nil
	component.Down("an insert failed")
	if state := health.Readiness(); state.Ready || state.Down["database"] != "an insert failed" {
		t.Errorf("it answers and accepts no insert: %+v", state)
	}
}

// A peer that hangs is reported in time by every scrape, and is asked once. Other peers and other
// routes do not wait for it.
func TestHungPeerIsNamedInTime(t *testing.T) {
	for name, ends := range map[string]bool{"that ends its attempt": true, "that does not": false} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				health := new(obs.Health)
				hung, asked := make(chan struct{}), 0
				database := health.Component("database", "verifier")
				database.Up()
				database.Ask(func(ctx context.Context) error {
					asked++
					if ends {
						<-ctx.Done()
						return ctx.Err()
					}
					<-hung
					return nil
				})
				broker := health.Component("broker", "verifier")
				broker.Up()
				broker.Ask(func(context.Context) error { return nil })
				handler := obs.Handler(health, obs.NewRegistry("1"))
				began := time.Now()
				for range 3 {
					go func() {
						if status, body := get(t, handler, "/readyz"); status != http.StatusServiceUnavailable ||
							strings.TrimSpace(body) != `{"ready":false,"down":{"database":"it has not answered for 2s"}}` {
							t.Errorf("%d %s", status, body)
						}
						if waited := time.Since(began); waited != obs.AnswerWithin {
							t.Errorf("the answer took %s", waited)
						}
					}()
				}
				synctest.Wait()
				if status, _ := get(t, handler, "/metrics"); status != http.StatusOK || time.Since(began) != 0 {
					t.Errorf("metrics: %d after %s", status, time.Since(began))
				}
				time.Sleep(obs.AnswerWithin)
				synctest.Wait()
				if asked != 1 {
					t.Errorf("asked %d times at once", asked)
				}
				if !ends { // it has been asked already: nobody waits again
					time.Sleep(time.Minute)
					began := time.Now()
					if state := health.Readiness(); state.Down["database"] != "it has not answered for 1m2s" || time.Since(began) != 0 {
						t.Errorf("%+v after %s", state, time.Since(began))
					}
				}
				close(hung)
				synctest.Wait()
				if ends {
					return
				}
				if state := health.Readiness(); !state.Ready || asked != 2 {
					t.Errorf("it answers again: %+v, asked %d times", state, asked)
				}
			})
		})
	}
}
