package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// Why a process has no lease. Repeating cures none of them: the errors are permanent.
var (
	// ErrLeaseHeld: another process has the lease, and answers.
	ErrLeaseHeld = errors.New("another process has the lease")
	// ErrLeaseSilent: another process has the lease and a connection to the broker, and does not answer.
	ErrLeaseSilent = errors.New("the process that has the lease does not answer")
	// ErrLeaseLost: this process had the lease and has it no more.
	ErrLeaseLost = errors.New("this process has lost the lease")
)

// answerWithin is how long a holder may take to answer.
const answerWithin = 2 * time.Second

// Holder is who has a lease.
type Holder struct {
	ID      string    `json:"id"`    // Acquire makes it
	Stage   string    `json:"stage"` // the lease is named after it
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"` // by the holder's clock; shown to people only
}

// String is "process 1234 on host a (version 1.0, since 2026-03-01T12:00:00Z)".
func (h *Holder) String() string {
	return fmt.Sprintf("process %d on host %s (version %s, since %s)", h.PID, h.Host, h.Version, h.Since.UTC().Format(time.RFC3339))
}

// subject is where the holder answers.
func (h *Holder) subject() string { return leaseSubject + h.Stage + "." + h.ID }

// Lease is the right of one process to run a stage. Its record in bucket leases names the
// holder. The holder listens on a subject of its own for as long as it is connected:
// whether it is alive is the broker's answer, and no clock decides it.
//
// A holder that was cut off may lose the lease without knowing. It therefore confirms
// the lease before what must not be done twice. All methods are safe for concurrent use.
type Lease struct {
	client   *Client
	bucket   *Bucket
	holder   Holder
	record   []byte // the holder, as the bucket has it
	revision uint64 // of the record
	answers  *nats.Subscription
}

// Acquire takes the lease of a stage: where nobody has it, and at once where its holder
// has no connection to the broker any more. Otherwise the error wraps ErrLeaseHeld or
// ErrLeaseSilent and names the holder. After an ErrUnavailable the same again is right.
func (c *Client) Acquire(ctx context.Context, holder Holder) (*Lease, error) {
	holder.ID = nuid.Next()
	bucket, err := c.Bucket(ctx, Leases)
	if err != nil {
		return nil, err
	}
	record, err := json.Marshal(holder)
	if err != nil {
		return nil, fmt.Errorf("encode the lease of %s: %w", holder.Stage, err)
	}
	l := &Lease{client: c, bucket: bucket, holder: holder, record: record}
	if err := c.unlessRefused(ctx, l.listen, leaseSubject); err != nil {
		return nil, fmt.Errorf("listen for questions about the lease of %s: %w", holder.Stage, err)
	}
	if err := c.unlessRefused(ctx, l.take, leaseSubject); err != nil {
		return nil, errors.Join(fmt.Errorf("take the lease of %s: %w", holder.Stage, err), l.answers.Unsubscribe())
	}
	return l, nil
}

// listen answers with the record, and asks itself whether that works: otherwise the next
// process would take this one for gone. It comes before the record is written: a process
// that reads the record may ask at once.
func (l *Lease) listen(ctx context.Context) (err error) {
	l.answers, err = l.client.conn.Subscribe(l.holder.subject(), func(m *nats.Msg) {
		if err := m.Respond(l.record); err != nil {
			l.client.cfg.Logger.Warn("another process's question about the lease cannot be answered", "stage", l.holder.Stage, "error", err)
		}
	})
	if err != nil {
		return classify(err)
	}
	err = l.question(ctx, &l.holder)
	if errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("the broker does not let this service listen on %s: permit its user to publish and subscribe on plumbline.lease.>", l.holder.subject())
	}
	if err != nil {
		return errors.Join(classify(err), l.answers.Unsubscribe())
	}
	return nil
}

// question returns nil where the holder answers, and ErrNoResponders where nobody listens
// on its subject. Before it takes a holder for silent it waits until the broker has dealt
// with the question, which may be slow, and asks again: the first question may have reached
// a connection that was about to end.
func (l *Lease) question(ctx context.Context, holder *Holder) error {
	err := l.questionOnce(ctx, holder)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err := l.client.flush(ctx); err != nil {
		return err
	}
	return l.questionOnce(ctx, holder)
}

func (l *Lease) questionOnce(ctx context.Context, holder *Holder) error {
	ctx, cancel := l.client.within(ctx, answerWithin)
	defer cancel()
	_, err := l.client.conn.RequestWithContext(ctx, holder.subject(), nil)
	return err
}

// take writes the record, over that of a holder that is gone. Each write is a
// compare-and-set: of several processes one succeeds, and the others ask that one.
func (l *Lease) take(ctx context.Context) error {
	for {
		before, last, err := l.bucket.GetNewest(ctx, l.holder.Stage)
		if err == nil {
			err = l.ask(ctx, before)
		}
		if err == nil || errors.Is(err, ErrNotFound) {
			l.revision, err = l.bucket.Update(ctx, l.holder.Stage, l.record, last)
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// ask returns nil where the holder that a record names is gone: nobody listens on its
// subject. The broker ends that with the connection, so a killed process is gone at once.
func (l *Lease) ask(ctx context.Context, record []byte) error {
	var other Holder
	if err := json.Unmarshal(record, &other); err != nil {
		return l.failed(ErrLeaseSilent, fmt.Sprintf("key %s of bucket %s cannot be read: %v; where no %[1]s runs, remove the key: nats kv del %[2]s %[1]s",
			l.holder.Stage, Leases, err))
	}
	link := l.client.link.Load()
	err := l.question(ctx, &other)
	connected := link.Err() == nil // all the while
	switch {
	case err == nil:
		return l.failed(ErrLeaseHeld, fmt.Sprintf("%s; a tenant has one %s: end that process first, or do not start this one", &other, other.Stage))
	case errors.Is(err, nats.ErrNoResponders):
		return nil
	case connected && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable):
		return l.failed(ErrLeaseSilent, fmt.Sprintf("%s is connected to the broker and did not answer within %s: end that process first; "+
			"where its machine is gone, the broker closes the connection within minutes, or remove the lease: nats kv del %s %s",
			&other, 2*answerWithin, Leases, other.Stage))
	}
	return fmt.Errorf("ask who has the lease of %s: %w", l.holder.Stage, classify(err))
}

// Confirm returns nil while this process has the lease, by the leader of the bucket. An
// error that wraps ErrLeaseLost names the process that took it. The record is compared,
// too: a bucket that was made again counts its revisions from the first.
func (l *Lease) Confirm(ctx context.Context) error {
	record, revision, err := l.bucket.GetNewest(ctx, l.holder.Stage)
	switch {
	case errors.Is(err, ErrNotFound):
		return l.lost(nil)
	case err != nil:
		return fmt.Errorf("confirm the lease of %s: %w", l.holder.Stage, err)
	case revision != l.revision || !bytes.Equal(record, l.record):
		return l.lost(record)
	}
	return nil
}

// Release gives the lease back. Where the broker cannot be reached the record stays, and
// does no harm: when the client is closed the answers end, and the next holder takes it over.
func (l *Lease) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	err := l.Confirm(ctx) // another process's record may have the same revision: see there
	if err == nil {
		err = l.bucket.Delete(ctx, l.holder.Stage, l.revision)
	}
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrLeaseLost) { // those: it is another process's
		l.client.cfg.Logger.Info("the record of the lease is left to the next holder", "stage", l.holder.Stage, "error", err)
	}
	if err := l.answers.Unsubscribe(); err != nil && !l.client.conn.IsClosed() {
		l.client.cfg.Logger.Warn("questions about the lease are still answered", "stage", l.holder.Stage, "error", err)
	}
}

// lost is the error of a process whose record was replaced by another; nil: was removed.
func (l *Lease) lost(record []byte) error {
	var other Holder
	if err := json.Unmarshal(record, &other); err != nil {
		return l.failed(ErrLeaseLost, fmt.Sprintf("key %s of bucket %s was removed or overwritten; this process ends", l.holder.Stage, Leases))
	}
	return l.failed(ErrLeaseLost, fmt.Sprintf("%s took it while this process was cut off from the broker; "+
		"this process ends; a tenant has one %s: run one of the two", &other, other.Stage))
}

// failed is a permanent error of the kind.
func (l *Lease) failed(kind error, text string) error {
	return &leaseError{kind: kind, text: fmt.Sprintf("%s: %v: %s", l.holder.Stage, kind, text)}
}

type leaseError struct {
	kind error
	text string
}

func (e *leaseError) Error() string { return e.text }
func (e *leaseError) Unwrap() error { return e.kind }

// Permanent reports that repeating is no cure (package run).
func (e *leaseError) Permanent() bool { return true }
