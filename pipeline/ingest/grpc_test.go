package ingest

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/plumbline/plumbline/pipeline/stream"
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

// exporter returns a client of gRPC's own library.
func (r *rig) exporter() ptraceotlp.GRPCClient {
	r.t.Helper()
	conn, err := grpc.NewClient(r.server.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return ptraceotlp.NewGRPCClient(conn)
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
