package stream

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// entry is one message that will be published.
type entry struct {
	subject string
	id      string // Msg-Id: the broker stores an id once within the duplicate window
	data    []byte
	header  nats.Header // in addition to the id; nil: none
	ctx     context.Context
	outcome Outcome
	done    func()

	fingerprint uint64 // of the id, for recent
	known       bool   // recent reports the id as probably stored, so the entry is sent alone
}

// size returns the number of bytes that count against a batch's limit.
func (e *entry) size() int { return len(e.data) + len(e.subject) + maxHeaderBytes }

// isTrace reports whether the entry is a trace. The id of a trace is the SHA-256 of its data,
// which others can predict.
func (e *entry) isTrace() bool { return strings.HasPrefix(e.subject, subject.Trace("")) }

// of reports whether the entry is a trace of the agent with this token.
func (e *entry) of(token string) bool { return e.subject == subject.Trace("")+token }

func (e *entry) resolve(o Outcome) {
	e.outcome = o
	e.done()
}

// message returns the entry as a single message.
func (e *entry) message() *nats.Msg {
	header := make(nats.Header, len(e.header)+1)
	maps.Copy(header, e.header)
	header[jetstream.MsgIDHeader] = []string{e.id}
	return &nats.Msg{Subject: e.subject, Data: e.data, Header: header}
}

// publish stores the entries in few atomic batches, and returns when all of them are stored. The
// error is the first refusal.
func (c *Client) publish(ctx context.Context, entries []entry) error {
	b := newBatcher(c)
	limits := CommitConfig{}.complete()
	var batch []*entry
	bytes := 0
	flush := func() {
		b.commit(ctx, batch)
		batch, bytes = batch[:0], 0
	}
	for i := range entries {
		e := &entries[i]
		e.done = func() {}
		if len(batch) == limits.MaxMessages || len(batch) > 0 && bytes+e.size() > limits.MaxBytes {
			flush()
		}
		batch, bytes = append(batch, e), bytes+e.size()
	}
	if len(batch) > 0 {
		flush()
	}
	return firstRefusal(entries)
}

// firstRefusal returns the first error, but prefers a transient one: the caller then tries again.
func firstRefusal(entries []entry) error {
	var first error
	for i := range entries {
		err := entries[i].outcome.Err
		if errors.Is(err, ErrUnavailable) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}
