package publisher

import (
	"cmp"
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// pauses computes the pause between attempts: the one that the service requested, otherwise
// a growing one.
type pauses struct {
	*backoff.ExponentialBackOff
	after time.Duration // requested by the last answer
}

// NextBackOff returns the pause before the next attempt, or backoff.Stop.
func (p *pauses) NextBackOff() time.Duration {
	pause := p.ExponentialBackOff.NextBackOff()
	if pause != backoff.Stop && p.after > 0 {
		pause, p.after = p.after, 0
	}
	return pause
}

// persist repeats attempt until it succeeds, fails permanently, or the client's
// patience is over.
func (c *Client) persist(ctx context.Context, attempt func(*pauses) error) error {
	p := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(cmp.Or(c.Patience, DefaultPatience)))}
	notify := func(err error, _ time.Duration) {
		if c.Waiting != nil {
			c.Waiting(err)
		}
	}
	return backoff.RetryNotify(func() error { return attempt(p) }, backoff.WithContext(p, ctx), notify)
}
