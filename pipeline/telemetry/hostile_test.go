package telemetry

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"

	"github.com/plumbline/plumbline/pipeline/config"
)

// A receiver may do to a connection what it likes: the attempt ends in time, nothing stays of it, and no reason
// repeats what was sent.
func TestHostileConnections(t *testing.T) {
	large := make([]byte, 16<<20) // more than the buffers between two sockets hold
	ends := []string{"no answer within the timeout", "no valid answer", "the connection ended without an answer", "connection reset by peer", "broken pipe"}
	for name, test := range map[string]struct {
		protocol string
		serve    func(*http2.Framer, net.Conn)
		encoded  []byte
		want     []string // what the reason ends with
	}{
		"over gRPC, nothing is read":              {config.OTLPOverGRPC, silent, large[:1<<20], ends[:1]},
		"over HTTP, nothing is read":              {config.OTLPOverHTTP, silent, large, ends[:1]},
		"over gRPC, nothing is answered":          {config.OTLPOverGRPC, silent, nil, ends[:1]},
		"over HTTP, nothing is answered":          {config.OTLPOverHTTP, silent, nil, ends[:1]},
		"over gRPC, SECRET is answered":           {config.OTLPOverGRPC, talk, nil, ends},
		"over HTTP, SECRET is answered":           {config.OTLPOverHTTP, talk, nil, ends},
		"no stream may begin":                     {config.OTLPOverGRPC, serve(ignore, http2.Setting{ID: http2.SettingMaxConcurrentStreams}), nil, ends[:1]},
		"every stream is refused":                 {config.OTLPOverGRPC, serve(refuseStream), nil, ends},
		"every connection ends":                   {config.OTLPOverGRPC, serve(goAway), nil, ends},
		"pings without end, and no answer":        {config.OTLPOverGRPC, serve(pings), nil, ends[:1]},
		"an answer, byte by byte":                 {config.OTLPOverGRPC, serve(trickle), nil, ends[:1]},
		"headers before headers, without an end":  {config.OTLPOverGRPC, serve(informing), nil, ends},
		"bytes for a stream that nobody has open": {config.OTLPOverGRPC, serve(foreignStream), nil, ends},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			address, end := listen(t, test.serve)
			defer end()
			p, err := newPoster(&config.OTLP{Endpoint: "http://" + address, Protocol: test.protocol}, "test")
			if err != nil {
				t.Fatal(err)
			}
			defer p.client.CloseIdleConnections()
			p.within = 100 * time.Millisecond
			got := p.post(t.Context(), "traces", test.encoded, rejectedSpans) // if this test hangs here, the bound does not hold
			if got.outcome != dropped || strings.Contains(got.reason, "SECRET") || !slices.ContainsFunc(test.want, func(end string) bool { return strings.HasSuffix(got.reason, end) }) {
				t.Errorf("%+v, want a reason of %q", got, test.want)
			}
		})
	}
}

// listen serves each connection until it is closed, or end is called.
func listen(t *testing.T, serve func(*http2.Framer, net.Conn)) (address string, end func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan net.Conn, 100)
	go func() {
		defer close(connections)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections <- conn
			go serve(http2.NewFramer(conn, conn), conn)
		}
	}()
	return listener.Addr().String(), func() {
		_ = listener.Close()
		for conn := range connections {
			_ = conn.Close()
		}
	}
}

func silent(*http2.Framer, net.Conn) {}

func talk(_ *http2.Framer, conn net.Conn) {
	_, _ = io.WriteString(conn, "SECRET SECRET SECRET\r\n\r\n")
	_ = conn.Close()
}

// serve speaks HTTP/2: it answers the beginning of each stream.
func serve(answer func(*http2.Framer, uint32) error, settings ...http2.Setting) func(*http2.Framer, net.Conn) {
	return func(f *http2.Framer, conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		err := f.WriteSettings(settings...)
		for err == nil {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err == nil && frame.Header().Type == http2.FrameHeaders {
				err = answer(f, frame.Header().StreamID)
			}
		}
	}
}

func ignore(*http2.Framer, uint32) error { return nil }

func refuseStream(f *http2.Framer, stream uint32) error {
	return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
}

func goAway(f *http2.Framer, _ uint32) error {
	return f.WriteGoAway(0, http2.ErrCodeNo, []byte("SECRET"))
}

func pings(f *http2.Framer, _ uint32) (err error) {
	for err == nil {
		err = f.WritePing(false, [8]byte{})
	}
	return err
}

// okHead are the headers of an answer of gRPC, as HPACK writes them: ":status: 200", and the type.
const okHead = "\x88\x5f\x10application/grpc"

func trickle(f *http2.Framer, stream uint32) error {
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(okHead), EndHeaders: true})
	for err == nil {
		time.Sleep(time.Millisecond)
		err = f.WriteData(stream, false, []byte{0})
	}
	return err
}

func informing(f *http2.Framer, stream uint32) (err error) {
	for err == nil { // ":status: 103"
		err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte("\x48\x03103"), EndHeaders: true})
	}
	return err
}

func foreignStream(f *http2.Framer, stream uint32) error {
	return f.WriteData(stream+2, false, []byte("SECRET"))
}
