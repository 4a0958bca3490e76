package ingest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// withGRPC adds the address of OTLP/gRPC.
func withGRPC(t testing.TB) func(*Config, *server) {
	return wired(func(s *server) {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.grpc = listener
	})
}

// dial returns a connection of gRPC's own library.
func (r *rig) dial(security credentials.TransportCredentials) *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient(r.server.grpc.Addr().String(), grpc.WithTransportCredentials(security), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// exporter returns a client of OTLP/gRPC.
func (r *rig) exporter() ptraceotlp.GRPCClient {
	return ptraceotlp.NewGRPCClient(r.dial(insecure.NewCredentials()))
}

func bearer(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// Calls of gRPC store spans, plain and compressed, once, and report what was rejected.
func TestSpansOverGRPC(t *testing.T) {
	r := start(t, withGRPC(t), withTokens(t, "key agent-1 traces:write"))
	client, ctx := r.exporter(), bearer(t.Context(), "key")
	request := calls("agent-1", 1500, func(i int, span ptrace.Span) {
		if i == 7 {
			span.Attributes().Remove("gen_ai.tool.name")
		}
	})
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		answer, err := client.Export(ctx, request, options...)
		if err != nil {
			t.Fatal(err)
		}
		if p := answer.PartialSuccess(); p.RejectedSpans() != 1 || !strings.Contains(p.ErrorMessage(), "(no_action)") {
			t.Errorf("%d %s", p.RejectedSpans(), p.ErrorMessage())
		}
	}
	r.stored(1499)
	if got := r.postSpans(typeProtobuf, protobuf(t, request), "Authorization: Bearer key").success(t); got.RejectedSpans() != 1 { // the same over HTTP
		t.Error(got.RejectedSpans())
	}
	r.stored(1499)
}

// Calls are refused with the codes that OTLP gives them, and only those that may succeed later say when.
func TestCallsAreRefused(t *testing.T) {
	r := start(t, withGRPC(t), withTokens(t, "key agent-1 traces:write", "reader agent-1 traces:read"))
	client := r.exporter()
	small := calls("agent-1", 1)
	large := calls("agent-1", 1, func(_ int, span ptrace.Span) { span.SetName(strings.Repeat("x", maxSpansBytes+1)) })
	for name, c := range map[string]struct {
		ctx     context.Context
		request ptraceotlp.ExportRequest
		gzip    bool
		code    codes.Code
		message string
	}{
		"without a token":   {t.Context(), small, false, codes.Unauthenticated, "no token"},
		"without the scope": {bearer(t.Context(), "reader"), small, false, codes.PermissionDenied, "traces:write"},
		"too large":         {bearer(t.Context(), "key"), large, false, codes.ResourceExhausted, "send fewer spans"},
		"too large as gzip": {bearer(t.Context(), "key"), large, true, codes.ResourceExhausted, "larger than"},
	} {
		var options []grpc.CallOption
		if c.gzip {
			options = append(options, grpc.UseCompressor(gzip.Name))
		}
		_, err := client.Export(c.ctx, c.request, options...)
		s, _ := grpcstatus.FromError(err)
		if s.Code() != c.code || !strings.Contains(s.Message(), c.message) || len(s.Details()) > 0 {
			t.Errorf("%s: %v %v", name, err, s.Details())
		}
	}
	r.stored(0)
}

// While the broker is away, and before it was reached, calls are told when to repeat.
func TestCallsWaitForTheBroker(t *testing.T) {
	reached := make(chan struct{})
	r := prepare(t, withGRPC(t), wired(impatient), wired(func(s *server) {
		connect := s.connect
		s.connect = func(ctx context.Context) (*stream.Client, error) {
			<-reached
			return connect(ctx)
		}
	}))
	client, request := r.exporter(), calls("agent-1", 3)
	retryable := func(when string) {
		t.Helper()
		_, err := client.Export(t.Context(), request)
		s, _ := grpcstatus.FromError(err)
		if s.Code() != codes.Unavailable || len(s.Details()) != 1 {
			t.Fatalf("%s: %v %v", when, err, s.Details())
		}
		if info, ok := s.Details()[0].(*errdetails.RetryInfo); !ok || info.RetryDelay.AsDuration() < time.Second {
			t.Errorf("%s: %v", when, s.Details())
		}
	}
	retryable("before the broker was reached")
	close(reached)
	r.awaitReady()
	r.broker.Stop()
	retryable("while the broker is away")
	r.broker.Start()
	r.await(func() bool { _, err := client.Export(t.Context(), request); return err == nil })
	if _, err := client.Export(t.Context(), request); err != nil {
		t.Error(err)
	}
	r.stored(3)
}

// bytesCodec sends messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                        { return "proto" }
func (bytesCodec) Marshal(message any) ([]byte, error) { return message.([]byte), nil }
func (bytesCodec) Unmarshal([]byte, any) error         { return nil }

// A call with a second message is refused: the answer OK would say that it is stored, too.
func TestSecondMessageIsRefused(t *testing.T) {
	r := start(t, withGRPC(t))
	conn := r.dial(insecure.NewCredentials())
	for n, want := range map[int]codes.Code{1: codes.OK, 2: codes.InvalidArgument} {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, pathGRPC, grpc.ForceCodec(bytesCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := stream.SendMsg(protobuf(t, calls(fmt.Sprintf("agent-%d-%d", n, i), 1))); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var answer []byte
		if err := stream.RecvMsg(&answer); grpcstatus.Code(err) != want {
			t.Errorf("%d messages: %v", n, err)
		}
	}
	r.stored(1)
}

// OTLP/gRPC has the certificates and tokens of the service: over TLS 1.3, from clients with a certificate of
// their own where that is required.
func TestSpansOverGRPCWithTLS(t *testing.T) {
	authority, publishers := transporttest.New(t), transporttest.New(t)
	r := prepare(t, withGRPC(t), withTokens(t, "key agent-1 traces:write"), configured(func(cfg *Config) {
		cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TLSClientCAFile = authority.CertFile, authority.KeyFile, publishers.CAFile
	}))
	r.awaitReady()
	request := calls("agent-1", 10)
	export := func(security credentials.TransportCredentials, ctx context.Context) error {
		_, err := ptraceotlp.NewGRPCClient(r.dial(security)).Export(ctx, request)
		return err
	}
	with := func(version uint16, certificates ...tls.Certificate) credentials.TransportCredentials {
		client := authority.Client(version)
		client.Certificates = certificates
		return credentials.NewTLS(client)
	}
	key := bearer(t.Context(), "key")
	for name, security := range map[string]credentials.TransportCredentials{
		"plain text": insecure.NewCredentials(), "no certificate": with(0), "one of another authority": with(0, authority.Pair), "TLS 1.2": with(tls.VersionTLS12, publishers.Pair),
	} {
		if err := export(security, key); grpcstatus.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := export(with(0, publishers.Pair), t.Context()); grpcstatus.Code(err) != codes.Unauthenticated {
		t.Errorf("a certificate without a token: %v", err)
	}
	r.stored(0)
	if err := export(with(0, publishers.Pair), key); err != nil {
		t.Error(err)
	}
	r.stored(10)
}
