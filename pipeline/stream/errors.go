package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers handle.
var (
	// ErrUnavailable means that the broker is unreachable, too slow or full. The request itself
	// is valid: repeat it a little later. See RetryAfter.
	ErrUnavailable = errors.New("the broker is unavailable")
	// ErrTooLarge means that the record is larger than the broker accepts. Retrying does not
	// help.
	ErrTooLarge = errors.New("larger than the broker accepts")
	// ErrNotFound means that the bucket has no such key, or the stream no such message.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that another writer has changed the key in the meantime.
	ErrConflict = errors.New("the key was changed by another writer")
	// ErrReplaced means that a stream is not the one that a reader has read: it was removed and
	// created again, or has lost its end. Its sequences mean other messages now. Retrying does not
	// help.
	ErrReplaced = errors.New("the stream was replaced while it was read")
)

// unavailable is an ErrUnavailable with its cause and the time after which to retry.
type unavailable struct {
	cause error
	after time.Duration
}

func (e *unavailable) Error() string   { return fmt.Sprintf("%v: %v", ErrUnavailable, e.cause) }
func (e *unavailable) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// replaced is an ErrReplaced that says what is different.
type replaced struct{ difference string }

func (e *replaced) Error() string   { return fmt.Sprintf("%v: %s", ErrReplaced, e.difference) }
func (e *replaced) Unwrap() error   { return ErrReplaced }
func (e *replaced) Permanent() bool { return true }

const (
	retrySoon  = time.Second      // for a broker that is restarting
	retryLater = 30 * time.Second // for a full stream or disk
)

// RetryAfter returns how long to wait before a retry. It returns 0 if err is not an
// ErrUnavailable.
func RetryAfter(err error) time.Duration {
	var e *unavailable
	if errors.As(err, &e) {
		return e.after
	}
	if errors.Is(err, ErrRefused) {
		return retryLater
	}
	return 0
}

// Reason returns why the broker refuses something now, for a client that will be asked to retry.
// The text contains no addresses, and nothing that concerns only the broker's operator.
func Reason(err error) string {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		return "it says: " + api.Description
	case errors.Is(err, errBusy):
		return errBusy.Error()
	case unreached(err):
		return "none of its servers can be reached"
	}
	return "it did not answer in time: a cluster answers while more than half of its servers reach each other"
}

// unreached reports whether an error means that the connection is lost.
func unreached(err error) bool {
	return isOneOf(err,
		nats.ErrDisconnected, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrConnectionClosed)
}

func isOneOf(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// Error codes of the server that the client library does not define.
const (
	codeAccountFull     = 10002
	codeNotLeader       = 10009
	codeNoConsumer      = 10014 // also sent, for an existing consumer, by a cluster that elects a leader
	codeNoStream        = 10059 // the same, for a stream
	codeServerFull      = 10023
	codeMemoryFull      = 10028
	codeStorageFull     = 10047
	codeMessageTooLarge = 10054
	codeStoreFailed     = 10077 // in practice: a limit of the stream is reached
	codeHeaderTooLarge  = 10097
	codeIDInProcess     = 10158
	codeBeingWritten    = 10164 // another batch is writing the subject whose sequence was expected
	codeBatchIncomplete = 10176
	codeTooManyBatches  = 10210
)

// classify converts an error of the client library into one of this package.
func classify(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.As(err, &api):
		return classifyAPI(api)
	case transient(err):
		return &unavailable{cause: err, after: retrySoon}
	}
	return err
}

func classifyAPI(err *jetstream.APIError) error {
	switch err.ErrorCode {
	case codeMessageTooLarge, codeHeaderTooLarge:
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case codeAccountFull, codeServerFull, codeMemoryFull, codeStorageFull, codeStoreFailed:
		return &unavailable{cause: err, after: retryLater}
	case codeNotLeader, codeNoConsumer, codeNoStream, codeIDInProcess, codeBatchIncomplete, codeTooManyBatches:
		return &unavailable{cause: err, after: retrySoon}
	}
	if err.Code >= 500 {
		return &unavailable{cause: err, after: retrySoon}
	}
	return err
}

// transient reports whether an error does not concern the request itself.
func transient(err error) bool {
	return unreached(err) || isOneOf(err,
		context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionDraining,
		jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrServerShutdown,
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrAsyncPublishTimeout,
		jetstream.ErrBucketNotFound, // classifyAPI treats codeNoStream in the same way
		jetstream.ErrTooManyStalledMsgs, jetstream.ErrMsgIteratorClosed)
}

// ErrRefused says that the broker refuses a subject to this client's user. Repeating the request
// helps only after somebody has changed the user's rights, so it ends a start. The error
// is an ErrUnavailable, too: a running service continues when the rights are back.
var ErrRefused = errors.New("the broker denies this user the right")

// refusal is the server's message that it refuses a request. Such a request is never answered.
type refusal struct {
	subject string
	user    string
	cause   error // contains the subject
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the broker denies %s the right (%v): give the service its own user and inbox prefix, with the rights that plumbline nats-config writes", r.user, r.cause)
}

// Is makes a refusal an ErrRefused and an ErrUnavailable. It wraps nothing, because readiness
// shows the innermost error, and this text contains the subject.
func (r *refusal) Is(target error) bool {
	return target == ErrRefused || target == ErrUnavailable || target == nats.ErrPermissionViolation // Is is asked for each of them
}

// making reports whether the refused request would create a stream or a consumer, which another
// user may create.
func (r *refusal) making() bool {
	return slices.ContainsFunc([]string{"STREAM.CREATE.", "STREAM.UPDATE.", "CONSUMER.CREATE."},
		func(request string) bool { return strings.HasPrefix(r.subject, api+request) })
}

// refusals passes refusals to those who wait for an answer. Without it, a refused request would
// look like a slow broker.
type refusals struct {
	mu      sync.Mutex
	waiting map[*waiting]struct{}
}

type waiting struct {
	parts []string // of subjects
	take  func(*refusal)
}

// await calls take with each refusal of a subject that contains one of the parts, until stop is
// called.
func (r *refusals) await(take func(*refusal), parts ...string) (stop func()) {
	w := &waiting{parts: parts, take: take}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[*waiting]struct{}{}
	}
	r.waiting[w] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, w)
	}
}

func (r *refusals) came(refused *refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.waiting {
		if slices.ContainsFunc(w.parts, func(part string) bool { return strings.Contains(refused.subject, part) }) {
			w.take(refused)
		}
	}
}

// refusalOf returns the refusal that a permission violation of the client library describes.
func (c *Client) refusalOf(conn *nats.Conn, err error) *refusal {
	_, quoted, _ := strings.Cut(err.Error(), `"`)
	subject, _, _ := strings.Cut(quoted, `"`)
	user := "the user"
	if name := cmp.Or(conn.Opts.Nkey, c.cfg.User, c.cfg.CredentialsFile); name != "" {
		user = "user " + name
	}
	return &refusal{subject: subject, user: user + " of " + cmp.Or(c.cfg.Name, "this service"), cause: err}
}

// anySubject matches every subject.
const anySubject = ""

// unlessRefused makes a request, and ends it at once if the server refuses a subject that
// contains one of the parts, or the inbox for the answers. The error is then an ErrRefused that
// names the subject.
func (c *Client) unlessRefused(ctx context.Context, request func(context.Context) error, parts ...string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer c.awaitRefusal(end, parts...)()
	return refusedOr(ctx, request(ctx))
}

// awaitRefusal ends a context, with the refusal as its cause, unless stop is called first.
func (c *Client) awaitRefusal(end context.CancelCauseFunc, parts ...string) (stop func()) {
	inboxes := cmp.Or(c.cfg.InboxPrefix, "_INBOX") + "."
	return c.refusals.await(func(r *refusal) { end(r) }, append(parts, inboxes)...)
}

// refusedOr returns the refusal that has ended a context, or err if there is none.
func refusedOr(ctx context.Context, err error) error {
	passing := errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled)
	if cause := context.Cause(ctx); passing && errors.Is(cause, ErrRefused) && !errors.Is(err, ErrRefused) {
		return cause
	}
	return err
}
