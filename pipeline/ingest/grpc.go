package ingest

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
)

// OTLP/gRPC is one method with one message each way. It is served by an http.Server and the router, so the
// limits of tokens, memory, pace and connections are those of every other request (ADR 30).
const (
	pathGRPC  = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	typeGRPC  = "application/grpc"
	frameHead = 5 // of a message: whether it is compressed, and its length
)

// newGRPC returns the server of OTLP/gRPC. Until the gate is open it asks clients to retry.
func newGRPC(work context.Context, s *server, gate *gate) *http.Server {
	handler := s.router.Admitted("gRPC TraceService/Export", auth.TracesWrite, refuseCall, s.call)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch refusal := admission.Refusal(r.Context()); {
		case r.URL.Path != pathGRPC:
			refuseCall(w, r, problem.New(http.StatusNotFound, problem.WordNoAddress, "there is no method %s: this address has %s only", r.URL.Path, pathGRPC))
		case refusal != "":
			refuseCall(w, r, problem.Unavailable(0, "%s: repeat the request later", refusal))
		case gate.handler.Load() == nil:
			refuseCall(w, r, problem.Unavailable(0, "the service is starting and has not reached the broker yet: repeat the request later"))
		default:
			handler.ServeHTTP(w, r)
		}
	})
	server := &http.Server{
		Handler:           s.router.Pace.Begin(serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		Protocols:         new(http.Protocols),
		BaseContext:       func(net.Listener) context.Context { return work },
	}
	if s.tls != nil {
		server.TLSConfig = s.tls.Clone()
	}
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(s.tls == nil)
	return server
}

// call stores the traces of the spans of an OTLP/gRPC request.
func (s *server) call(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	if kind, err := request.MediaType(r, typeGRPC, typeGRPC+"+proto"); err != nil || r.Method != http.MethodPost {
		return 0, problem.New(http.StatusUnsupportedMediaType, "media_type", "%s of %q is no call of gRPC", r.Method, kind)
	}
	held := s.router.Hold(r)
	defer held.Release()
	limit := min(s.cfg.MaxBodyBytes, maxSpansBytes, held.Share()-1)
	body, err := s.router.Body(w, r, new(gzip.Reader), limit+frameHead)
	if err != nil {
		return 0, err
	}
	raw, err := readMessage(r, held, body, limit)
	if err != nil {
		return 0, err
	}
	done, err := s.export(r, held, otel.Protobuf, raw, grant)
	if err != nil {
		return 0, err
	}
	answer, err := done.answer(otel.Protobuf)
	if err != nil {
		return 0, fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", typeGRPC)
	code := problem.WriteText(w, http.StatusOK, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer))), answer...))
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	return code, nil
}

// readMessage reads the only message of a call.
func readMessage(r *http.Request, held *request.Holding, body io.Reader, limit int64) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, request.BodyProblem(err)
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > limit {
		return nil, problem.New(http.StatusRequestEntityTooLarge, "too_large", "a message of %d bytes, it may have %d: send fewer spans in a request", size, limit)
	}
	sent := &io.LimitedReader{R: body, N: size}
	message := io.Reader(sent)
	if head[0] != 0 {
		if encoding := r.Header.Get("Grpc-Encoding"); encoding != "gzip" {
			return nil, problem.New(http.StatusUnsupportedMediaType, "encoding", "grpc-encoding is %q: send gzip or identity", encoding).With("Grpc-Accept-Encoding", "identity, gzip")
		}
		unzip, err := gzip.NewReader(sent)
		if err != nil {
			return nil, problem.New(http.StatusBadRequest, "encoding", "the message is not gzip: %v", err)
		}
		message = http.MaxBytesReader(nil, unzip, limit)
	}
	raw, err := held.ReadAll(r.Context(), message, limit)
	if err == nil && sent.N > 0 {
		err = request.BodyProblem(io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	// What follows would not be stored, so it must not be answered with OK.
	if _, err := io.ReadFull(body, head[:1]); !errors.Is(err, io.EOF) {
		return nil, problem.New(http.StatusBadRequest, "second_message", "more follows after the message: a call has one")
	}
	return raw, nil
}

// refuseCall answers with a problem as gRPC wants it: a status in the trailers. Where the same call may
// succeed later, the status says when.
func refuseCall(w http.ResponseWriter, _ *http.Request, p *problem.Problem) int {
	p.SetHeaders(w.Header())
	code := otel.CodeOf(p.Code)
	seconds, _ := strconv.Atoi(w.Header().Get("Retry-After")) // 0 without
	header := w.Header()
	header.Set("Content-Type", typeGRPC)
	header.Set("Grpc-Status", strconv.Itoa(int(code)))
	header.Set("Grpc-Message", percent(p.Message))
	if details, err := otel.Retry(code, p.Message, time.Duration(seconds)*time.Second); err == nil && seconds > 0 {
		header.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(details))
	}
	w.WriteHeader(http.StatusOK)
	return p.Code
}

// percent encodes a message for a header (gRPC over HTTP/2, Percent-Encoded).
func percent(message string) string {
	var b strings.Builder
	for i := range len(message) {
		if c := message[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// serveGRPC serves OTLP/gRPC, if it is configured, until ctx ends and the calls in progress are answered. A
// connection carries many calls, so there are few of them.
func (s *server) serveGRPC(ctx, work context.Context, gate *gate) error {
	if s.grpc == nil {
		return nil
	}
	bounds := admission.Operators()
	bounds.AddressShare = s.cfg.Connections.AddressShare
	return admission.New("otlp_grpc", bounds, s.env.Log, s.env.Metrics).Serve(ctx, work, newGRPC(work, s, gate), s.grpc)
}
