package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers act upon.
var (
	// ErrUnavailable: the broker is away, too slow or full. Nothing is wrong with
	// the request; the same again, a little later, is right. See RetryAfter.
	ErrUnavailable = errors.New("the broker does not take it now")
	// ErrTooLarge: the record is larger than the broker takes; it never will be.
	ErrTooLarge = errors.New("larger than the broker accepts")
	// ErrNotFound: the bucket has no such key, or the stream no such message.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the key was changed by somebody else in the meantime.
	ErrConflict = errors.New("the key was changed by another writer")
)

// unavailable is an ErrUnavailable with its cause and a hint when to retry.
type unavailable struct {
	cause error
	after time.Duration
}

func (e *unavailable) Error() string   { return fmt.Sprintf("%v: %v", ErrUnavailable, e.cause) }
func (e *unavailable) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

const (
	retrySoon  = time.Second      // a broker that restarts
	retryLater = 30 * time.Second // a stream or disk that is full
)

// RetryAfter tells how long to wait before the same again; 0 when err is not an
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

// Reason says why the broker does not take something now, for whoever is asked to send it
// again: without addresses, and without what concerns the broker's operator alone.
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

// unreached reports whether an error is of a connection that is lost.
func unreached(err error) bool {
	for _, kind := range []error{
		nats.ErrDisconnected, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrConnectionClosed,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Error codes of the server that the client library does not name.
const (
	codeAccountFull     = 10002
	codeNotLeader       = 10009
	codeNoConsumer      = 10014 // by a cluster that elects a leader, also for one that exists
	codeNoStream        = 10059 // likewise
	codeServerFull      = 10023
	codeMemoryFull      = 10028
	codeStorageFull     = 10047
	codeMessageTooLarge = 10054
	codeStoreFailed     = 10077 // in practice: the stream's limits are reached
	codeHeaderTooLarge  = 10097
	codeIDInProcess     = 10158
	codeBeingWritten    = 10164 // the expected sequence of a subject that another batch is writing
	codeBatchIncomplete = 10176
	codeTooManyBatches  = 10210
)

// classify turns an error of the client library into one of ours.
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

// transient tells whether an error says nothing about the request itself.
func transient(err error) bool {
	for _, kind := range []error{
		context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, nats.ErrConnectionDraining,
		jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrServerShutdown,
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrAsyncPublishTimeout,
		jetstream.ErrBucketNotFound, // what classifyAPI says of codeNoStream holds for it, too
		jetstream.ErrTooManyStalledMsgs, jetstream.ErrConnectionClosed, jetstream.ErrMsgIteratorClosed,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
