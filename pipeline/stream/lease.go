package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// The reasons why a process has no lease. All of them are permanent: retrying does not help.
var (
	// ErrLeaseHeld means that another process has the lease, and answers.
	ErrLeaseHeld = errors.New("another process has the lease")
	// ErrLeaseSilent means that another process has the lease and a connection to the broker, but
	// does not answer.
	ErrLeaseSilent = errors.New("the process that has the lease does not answer")
	// ErrLeaseLost means that this process had the lease and has lost it.
	ErrLeaseLost = errors.New("this process has lost the lease")
)

// Lease is the right of one process to run a stage. Its record in bucket leases names the holder,
// and the holder announces its presence. So the broker decides whether the holder is alive, and no
// clock does.
//
// A holder that was cut off may lose the lease without noticing. It must therefore confirm the
// lease before each action that must not happen twice. All methods are safe for concurrent use.
type Lease struct {
	*Presence
	bucket   *Bucket
	revision uint64 // of the record in the bucket
}

// Acquire takes the lease of a stage if nobody has it, or if its holder has no connection to the
// broker any more. Otherwise the error wraps ErrLeaseHeld or ErrLeaseSilent and names the holder.
// After an ErrUnavailable it is safe to call Acquire again.
func (c *Client) Acquire(ctx context.Context, holder Holder) (*Lease, error) {
	bucket, err := c.Bucket(ctx, Leases)
	if err != nil {
		return nil, err
	}
	presence, err := c.Announce(ctx, holder)
	if err != nil {
		return nil, err
	}
	l := &Lease{Presence: presence, bucket: bucket}
	if err := c.unlessRefused(ctx, l.take, leaseSubject); err != nil {
		return nil, errors.Join(fmt.Errorf("take the lease of %s: %w", holder.Stage, err), presence.answers.Unsubscribe())
	}
	return l, nil
}

// take writes the record, and replaces that of a holder that is gone. Each write is a
// compare-and-swap: one of several processes succeeds, and the others then ask that one.
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

// ask returns nil if the holder that a record names is gone, that is, if nobody listens on its
// subject. The broker ends the subscription with the connection, so a killed process is gone at
// once.
func (l *Lease) ask(ctx context.Context, record []byte) error {
	var other Holder
	if err := json.Unmarshal(record, &other); err != nil {
		return l.failed(ErrLeaseSilent, fmt.Sprintf("key %s of bucket %s cannot be read: %v; if no %[1]s runs, remove the key: nats kv del %[2]s %[1]s",
			l.holder.Stage, Leases, err))
	}
	err := l.Reach(ctx, &other)
	switch {
	case err == nil:
		return l.failed(ErrLeaseHeld, fmt.Sprintf("%s; a tenant has one %s: end that process first, or do not start this one", &other, other.Stage))
	case errors.Is(err, ErrGone):
		return nil
	case errors.Is(err, ErrLeaseSilent):
		return l.failed(ErrLeaseSilent, fmt.Sprintf("%s is connected to the broker and did not answer within %s: end that process first; "+
			"if its machine is gone, the broker closes the connection within minutes, or remove the lease: nats kv del %s %s",
			&other, 2*answerWithin, Leases, other.Stage))
	}
	return fmt.Errorf("ask who has the lease of %s: %w", l.holder.Stage, err)
}

// Confirm returns nil if this process still has the lease. It asks the leader of the bucket. An
// error that wraps ErrLeaseLost names the process that took the lease. Confirm also compares the
// record, because a bucket that was created again counts its revisions from the start.
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

// Release gives the lease back. If the broker cannot be reached, the record remains, which is
// harmless: the answers end when the client is closed, and the next holder takes the lease over.
func (l *Lease) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	err := l.Confirm(ctx) // another process's record may have the same revision: see Confirm
	if err == nil {
		err = l.bucket.Delete(ctx, l.holder.Stage, l.revision)
	}
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrLeaseLost) { // else it is another process's
		l.client.cfg.Logger.Info("cannot delete the record of the lease; its next holder replaces it", "stage", l.holder.Stage, "error", err)
	}
	l.End()
}

// lost returns the error of a process whose record was replaced by another one, or removed (nil).
func (l *Lease) lost(record []byte) error {
	var other Holder
	if err := json.Unmarshal(record, &other); err != nil {
		return l.failed(ErrLeaseLost, fmt.Sprintf("key %s of bucket %s was removed or overwritten; this process ends", l.holder.Stage, Leases))
	}
	return l.failed(ErrLeaseLost, fmt.Sprintf("%s took it while this process was cut off from the broker; "+
		"this process ends; a tenant has one %s: run one of the two", &other, other.Stage))
}

// failed returns a permanent error of the given kind.
func (l *Lease) failed(kind error, text string) error {
	return &leaseError{kind: kind, text: fmt.Sprintf("%s: %v: %s", l.holder.Stage, kind, text)}
}

type leaseError struct {
	kind error
	text string
}

func (e *leaseError) Error() string { return e.text }
func (e *leaseError) Unwrap() error { return e.kind }

// Permanent returns true: retrying does not help (package service).
func (e *leaseError) Permanent() bool { return true }
