package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// outcome is the result of one attempt, and a label of the metrics.
type outcome string

const (
	delivered   outcome = "delivered"
	refused     outcome = "refused"     // the receiver does not take this alert
	unavailable outcome = "unavailable" // no answer, or the receiver says that it cannot take any now
	gone        outcome = "gone"        // 410: the receiver wants no more alerts
)

// answer is what an endpoint answered to one attempt.
type answer struct {
	outcome outcome
	reason  string        // for the log: a status, or why there is none
	wait    time.Duration // that the receiver asks for (Retry-After)
}

// mostAnswer is how much of an answer's body is read. Its contents are never used: a connection
// can be used again when its answer was read to the end.
const mostAnswer = 16 << 10

// mostRetryAfter is the longest wait that a receiver may ask for.
const mostRetryAfter = 24 * time.Hour

// newHTTPClient returns a client that follows no redirect: alerts go only where the file says.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxy of the environment
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.MaxConnsPerHost = 2 // one alert at a time, and a connection that is being closed
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send makes one attempt.
func send(ctx context.Context, client *http.Client, e *Endpoint, secrets []Secret, agent string, a *alert) answer {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(a.body))
	if err != nil {
		return answer{outcome: unavailable, reason: "the request cannot be made"}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", agent)
	Sign(request.Header, secrets, a.id, time.Now(), a.body)
	response, err := client.Do(request)
	if err != nil {
		return answer{outcome: unavailable, reason: reasonOf(err)}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer)) // the status is the answer
	return answer{
		outcome: outcomeOf(response.StatusCode),
		reason:  fmt.Sprintf("status %d", response.StatusCode),
		wait:    retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

// mostReason is how many bytes of a reason are logged.
const mostReason = 256

// errClosedUnasked is the text of net/http's error, which it does not export, for a connection that the receiver
// closed before the request was sent.
const errClosedUnasked = "http: server closed idle connection"

// reasonOf returns why there is no answer, without the URL, which may contain a secret, and without what
// the receiver sent, which may repeat the request.
func reasonOf(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	connection, isConnection := errors.AsType[*net.OpError](err)
	certificate, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within the timeout"
	case isConnection:
		return schema.Clip(connection.Error(), mostReason)
	case isCertificate:
		return schema.Clip(certificate.Error(), mostReason)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err.Error() == errClosedUnasked:
		return "the connection ended without an answer"
	}
	return "no valid answer"
}

func outcomeOf(status int) outcome {
	switch {
	case status >= 200 && status < 300:
		return delivered
	case status == http.StatusGone:
		return gone
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return unavailable
	}
	return refused // redirects, too
}

// retryAfter parses the header of RFC 9110, section 10.2.3: seconds, or a date. It returns 0 where
// there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, mostRetryAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), mostRetryAfter)
	}
	return 0
}
