package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// unavailable is an ErrUnavailable with its cause and the time after which to retry.
type unavailable struct {
	cause error
	after time.Duration
}

func (e *unavailable) Error() string   { return fmt.Sprintf("%v: %v", ErrUnavailable, e.cause) }
func (e *unavailable) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

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
