package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Outbound returns a client for requests to a receiver of the user's. It uses the proxy of the environment, and
// follows no redirect: alerts, metrics and the headers with their secrets go only where the settings say. trust is
// as Trust returns it.
func Outbound(trust *tls.Config) *http.Client { return client(outbound(trust)) }

// OutboundHTTP2 is Outbound for receivers that speak HTTP/2 only, such as those of gRPC. Unencrypted requests use no
// proxy: proxies take them over HTTP/1.
func OutboundHTTP2(trust *tls.Config) *http.Client {
	t := outbound(trust)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	t.DisableCompression = true // gRPC has its own
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "http" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(r)
	}
	return client(t)
}

// mostUnread is how much of an answer a receiver may send over HTTP/2 before it is read.
const mostUnread = 64 << 10

func outbound(trust *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 64 << 10
	t.MaxConnsPerHost = 2
	t.TLSClientConfig = trust
	t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: mostUnread, MaxReceiveBufferPerConnection: 4 * mostUnread}
	return t
}

func client(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     abandoning{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// abandoning is a transport that closes a connection over which a request got no answer in time. HTTP/2 would use
// it for the next requests, too, though there may be nothing at its other end any more: the system notices that
// after a quarter of an hour only.
type abandoning struct{ *http.Transport }

// RoundTrip is http.RoundTripper's.
func (a abandoning) RoundTrip(request *http.Request) (*http.Response, error) {
	var used atomic.Pointer[net.Conn]
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { used.Store(&got.Conn) },
	})
	response, err := a.Transport.RoundTrip(request.WithContext(ctx))
	if conn := used.Load(); err != nil && ctx.Err() != nil && conn != nil {
		if encrypted, ok := (*conn).(*tls.Conn); ok { // its Close would wait for the other end
			_ = encrypted.NetConn().Close()
		}
		_ = (*conn).Close()
	}
	return response, err
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

// mostWait is the longest wait that a receiver may ask for.
const mostWait = 24 * time.Hour

// Wait returns the wait that a receiver asks for, within 0 and a day.
func Wait(asked time.Duration) time.Duration { return min(max(asked, 0), mostWait) }

// RetryAfter parses the header of RFC 9110, section 10.2.3: seconds, or a date. It returns 0 where
// there is none.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return Wait(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return Wait(at.Sub(now))
	}
	return 0
}
