package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Outbound returns a client for requests to a receiver of the user's. It uses the proxy of the environment, and
// follows no redirect: alerts, metrics and the headers with their secrets go only where the settings say. trust is
// as Trust returns it.
func Outbound(trust *tls.Config) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 64 << 10
	t.MaxConnsPerHost = 2
	t.TLSClientConfig = trust
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// mostReason is how many bytes of a reason are logged.
const mostReason = 256

// errClosedUnasked is the text of net/http's error, which it does not export, for a connection that the receiver
// closed before the request was sent.
const errClosedUnasked = "http: server closed idle connection"

// Reason returns why a request of an http.Client has no answer, without the URL, which may contain a secret, and
// without what the receiver sent, which may repeat the request.
func Reason(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	connection, isConnection := errors.AsType[*net.OpError](err)
	certificate, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	late, mayBeLate := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was ended here"
	case errors.Is(err, context.DeadlineExceeded), mayBeLate && late.Timeout():
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

// mostRetryAfter is the longest wait that a receiver may ask for.
const mostRetryAfter = 24 * time.Hour

// RetryAfter parses the header of RFC 9110, section 10.2.3: seconds, or a date. It returns 0 where
// there is none.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, mostRetryAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), mostRetryAfter)
	}
	return 0
}
