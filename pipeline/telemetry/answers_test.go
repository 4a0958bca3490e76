package telemetry

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plumbline/plumbline/pipeline/config"
)

// attempt makes one attempt to send traces that have no spans.
func attempt(t *testing.T, cfg config.OTLP) answer {
	t.Helper()
	p, err := newPoster(&cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer p.client.CloseIdleConnections()
	encoded, err := ptraceotlp.NewExportRequest().MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return p.post(t.Context(), "traces", encoded, rejectedSpans)
}

// Of the statuses of gRPC, those that OTLP calls retryable are worth another attempt, after the wait that the
// receiver asks for.
func TestStatusesOfGRPC(t *testing.T) {
	var said verdict
	r := newReceiver(t, config.OTLPOverGRPC, nil, func(string) verdict { return said })
	again := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		want := rejected
		if code == codes.OK {
			want = sent
		} else if slices.Contains(again, code) {
			want = dropped
		}
		said = verdict{code: code}
		if got := attempt(t, r.OTLP); got.outcome != want || got.wait != 0 || strings.Contains(got.reason, "SECRET") {
			t.Errorf("%s: %s after %s, %s, want %s", code, got.outcome, got.wait, got.reason, want)
		}
	}
	for _, test := range []struct {
		code codes.Code
		asks *durationpb.Duration
		want outcome
		wait time.Duration
	}{
		{codes.Unavailable, durationpb.New(7 * time.Second), dropped, 7 * time.Second},
		{codes.ResourceExhausted, durationpb.New(7 * time.Second), dropped, 7 * time.Second},
		{codes.ResourceExhausted, &durationpb.Duration{}, dropped, 0},
		{codes.InvalidArgument, durationpb.New(7 * time.Second), rejected, 0},
		{codes.Unavailable, durationpb.New(-time.Second), dropped, 0},
		{codes.Unavailable, &durationpb.Duration{Seconds: 1 << 62, Nanos: -5}, dropped, 24 * time.Hour},
	} {
		said = verdict{code: test.code, retry: test.asks}
		if got := attempt(t, r.OTLP); got.outcome != test.want || got.wait != test.wait {
			t.Errorf("%s, %s: %s after %s, want %s after %s", test.code, test.asks, got.outcome, got.wait, test.want, test.wait)
		}
	}
	r = newReceiver(t, config.OTLPOverHTTP, nil, func(string) verdict { return said })
	said = verdict{code: codes.Unavailable, retry: durationpb.New(7 * time.Second)}
	if got := attempt(t, r.OTLP); got.outcome != dropped || got.wait != 7*time.Second {
		t.Errorf("over HTTP: %s after %s", got.outcome, got.wait)
	}
}

// odd is a handler that answers a call of gRPC with a body, and with a status in the trailers.
func odd(body, status string, more ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc+proto")
		_, _ = io.WriteString(w, body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
		for i := 0; i < len(more); i += 2 {
			w.Header().Set(http.TrailerPrefix+more[i], more[i+1])
		}
	}
}

// plain is a handler that answers with a status of HTTP, and headers.
func plain(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(w, "SECRET")
		}
	}
}

// endless writes until nobody reads.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	for err := error(nil); err == nil; {
		_, err = w.Write(make([]byte, 32<<10))
	}
}

// cut ends in the middle of an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	_, _ = w.Write([]byte{0, 0})
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// However odd an answer is, the attempt ends, says truly how, and repeats nothing that the receiver said.
func TestOddAnswers(t *testing.T) {
	var serve http.HandlerFunc
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		serve(w, r)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	frame := func(message string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
	}
	const ok, exhausted, gRPC, overHTTP = "0", "8", config.OTLPOverGRPC, config.OTLPOverHTTP
	for name, test := range map[string]struct {
		protocol string
		serve    http.HandlerFunc
		want     answer
	}{
		"no message":              {gRPC, odd("", ok), answer{sent, "0 spans of a request are rejected", 0, 0}},
		"a message that is none":  {gRPC, odd(frame("\xff\xff"), ok), answer{sent, "", 0, 0}},
		"a message in part":       {gRPC, odd(frame("SECRET")[:8], ok), answer{sent, "0 spans of a request are rejected", 0, 0}},
		"two messages":            {gRPC, odd(frame("")+frame(""), ok), answer{sent, "0 spans of a request are rejected", 0, 0}},
		"a compressed message":    {gRPC, odd("\x01"+frame("SECRET")[1:], ok), answer{sent, "0 spans of a request are rejected", 0, 0}},
		"a giant message":         {gRPC, odd("\x00\xff\xff\xff\xff"+strings.Repeat("a", mostAnswer), ok), answer{rejected, "the answer is too long", 0, 0}},
		"an endless message":      {gRPC, endless, answer{rejected, "the answer is too long", 0, 0}},
		"no status":               {gRPC, odd(frame(""), ""), answer{rejected, "gRPC status Unknown", 0, 0}},
		"a status that is none":   {gRPC, odd("", "SECRET"), answer{rejected, "gRPC status Unknown", 0, 0}},
		"an unknown status":       {gRPC, odd("", "99"), answer{rejected, "gRPC status Code(99)", 0, 0}},
		"details that are none":   {gRPC, odd("", exhausted, "Grpc-Status-Details-Bin", "SECRET!"), answer{rejected, "gRPC status ResourceExhausted", 0, 0}},
		"details of nothing":      {gRPC, odd("", exhausted, "Grpc-Status-Details-Bin", base64.StdEncoding.EncodeToString([]byte("SECRET"))), answer{rejected, "gRPC status ResourceExhausted", 0, 0}},
		"a page":                  {gRPC, plain(http.StatusOK, "Content-Type", "text/html"), answer{rejected, "the answer is not of gRPC", 0, 0}},
		"nothing":                 {gRPC, plain(http.StatusNoContent), answer{rejected, "status 204", 0, 0}},
		"a redirect":              {gRPC, plain(http.StatusTemporaryRedirect, "Location", "/SECRET"), answer{rejected, "status 307", 0, 0}},
		"a proxy without a peer":  {gRPC, plain(http.StatusServiceUnavailable, "Retry-After", "7"), answer{dropped, "status 503", 7 * time.Second, 0}},
		"an answer in part":       {gRPC, cut, answer{dropped, "no valid answer", 0, 0}},
		"trailers without end":    {gRPC, odd("", ok, "A", strings.Repeat("SECRET", 1<<15)), answer{dropped, "no valid answer", 0, 0}},
		"headers without end":     {gRPC, plain(http.StatusOK, "A", strings.Repeat("SECRET", 1<<15)), answer{dropped, "no valid answer", 0, 0}},
		"HTTP, a redirect":        {overHTTP, plain(http.StatusTemporaryRedirect, "Location", "/SECRET"), answer{rejected, "status 307", 0, 0}},
		"HTTP, a page":            {overHTTP, plain(http.StatusOK, "Content-Type", "text/html"), answer{sent, "0 spans of a request are rejected", 0, 0}},
		"HTTP, an endless answer": {overHTTP, endless, answer{sent, "0 spans of a request are rejected", 0, 0}},
		"HTTP, an answer in part": {overHTTP, cut, answer{sent, "0 spans of a request are rejected", 0, 0}},
	} {
		serve = test.serve
		if got := attempt(t, config.OTLP{Endpoint: server.URL, Protocol: test.protocol}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A receiver of the other protocol takes nothing, and one that is away takes it later.
func TestReceiversThatAreNone(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		other := map[string]string{config.OTLPOverHTTP: config.OTLPOverGRPC, config.OTLPOverGRPC: config.OTLPOverHTTP}[protocol]
		r := newReceiver(t, other, nil, nil)
		r.Protocol = protocol
		if got := attempt(t, r.OTLP); got.outcome == sent {
			t.Errorf("%s at an address of %s: %+v", protocol, other, got)
		}
		r.end()
		if got := attempt(t, r.OTLP); got.outcome != dropped || !strings.HasSuffix(got.reason, "connection refused") {
			t.Errorf("%s, nobody listens: %+v", protocol, got)
		}
	})
}
