package service

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// fullBroker answers a ping at once, and stores nothing from full until free.
type fullBroker struct {
	full, free time.Time
	hangs      bool // a trial is not answered, instead of refused
}

func (b *fullBroker) Ping(context.Context) error { return nil }

func (b *fullBroker) Trial(ctx context.Context) error {
	if now := time.Now(); now.Before(b.full) || now.After(b.free) {
		return nil
	}
	if b.hangs {
		<-ctx.Done()
		return errors.Join(stream.ErrUnavailable, ctx.Err())
	}
	return errors.Join(stream.ErrUnavailable, errors.New("no space left on device"))
}

// A broker that stores nothing is reported within ten seconds of the moment in which its disk is
// full, wherever between two trials that moment lies, and whether it refuses or never answers. It is
// not reported before.
func TestFullBrokerIsReportedWithinTenSeconds(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		for after := time.Duration(0); after < 3*trialEvery; after += 250 * time.Millisecond {
			bubble.Test(t, func(t *testing.T) {
				env := testEnv(io.Discard)
				env.Started()
				env.Component("broker").Up()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				full := time.Now().Add(after)
				broker := &fullBroker{full: full, free: full.Add(10 * time.Second), hangs: hangs}
				go func() { ended <- TryBroker(ctx, env, broker) }()
				if time.Sleep(after); down(env, "broker") != "" {
					t.Errorf("reported before the disk was full: %s", down(env, "broker"))
				}
				if time.Sleep(10 * time.Second); down(env, "broker") == "" {
					t.Errorf("full after %s, unanswered %v: not reported within ten seconds", after, hangs)
				}
				if time.Sleep(10 * time.Second); down(env, "broker") != "" {
					t.Errorf("it stores again and is reported as %s", down(env, "broker"))
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
