package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

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
