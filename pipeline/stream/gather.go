package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// gather forms batches until Close. It hands over a batch when the batch is full or its first
// record has waited for Config.Linger.
func (m *Committer) gather() {
	defer close(m.ready)
	g := gathering{committer: m, linger: time.NewTimer(0)}
	<-g.linger.C
	for {
		select {
		case r := <-m.queue:
			g.take(r)
		case <-g.linger.C:
			g.flush()
		case <-m.quit:
			g.flush()
			return
		}
	}
}

// gathering is the batch that is being formed.
type gathering struct {
	committer *Committer
	batch     []*entry
	bytes     int
	linger    *time.Timer
}

// take distributes a request's records over as many batches as needed.
func (g *gathering) take(r *request) {
	for i := range r.entries {
		e := &r.entries[i]
		if err := g.refusal(e); err != nil {
			e.resolve(Outcome{Err: err})
			continue
		}
		if len(g.batch) > 0 && g.bytes+e.size() > g.committer.cfg.MaxBytes {
			g.flush()
		}
		g.add(e)
		if len(g.batch) >= g.committer.cfg.MaxMessages {
			g.flush()
		}
	}
}

// refusal returns why a record need not be sent at all, or nil.
func (g *gathering) refusal(e *entry) error {
	limit := g.committer.client.conn.MaxPayload()
	switch {
	case e.ctx.Err() != nil:
		return &unavailable{cause: e.ctx.Err(), after: retrySoon}
	case g.committer.client.away():
		return &unavailable{cause: nats.ErrDisconnected, after: retrySoon}
	case e.subject == subject.Trace(""):
		return errNoAgent
	case len(e.subject) > subject.MaxBytes:
		return fmt.Errorf("%w: the subject of its agent has %d bytes, the limit is %d", ErrTooLarge, len(e.subject), subject.MaxBytes)
	case limit > 0 && int64(len(e.data)+maxHeaderBytes) > limit:
		return fmt.Errorf("%w: %d bytes and headers, the limit is %d", ErrTooLarge, len(e.data), limit)
	}
	return nil
}

var errNoAgent = errors.New("a record without an agent cannot be published")

func (g *gathering) add(e *entry) {
	if len(g.batch) == 0 {
		g.linger.Reset(g.committer.cfg.Linger)
	}
	g.batch = append(g.batch, e)
	g.bytes += e.size()
}

// flush hands the batch over. It blocks while the previous batch is being committed.
func (g *gathering) flush() {
	g.linger.Stop()
	if len(g.batch) == 0 {
		return
	}
	g.committer.ready <- g.batch
	g.batch = make([]*entry, 0, g.committer.cfg.MaxMessages)
	g.bytes = 0
}
