package telemetry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// overGRPC is OTLP/gRPC: a method for each signal, with one message each way. Like ingest, which serves it, it is
// net/http with a frame head and trailers (ADR 33).
type overGRPC struct{}

const (
	typeGRPC  = "application/grpc"
	frameHead = 5 // of a message: whether it is compressed, and its length
)

// methods are the paths, by signal.
var methods = map[string]string{
	"traces":  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	"metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}

func (overGRPC) request(ctx context.Context, address, signal string, encoded []byte) (*http.Request, error) {
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(encoded))), encoded...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+methods[signal], bytes.NewReader(framed))
	if err == nil {
		request.Header.Set("Content-Type", typeGRPC)
		request.Header.Set("Te", "trailers")
	}
	return request, err
}

// answer is that of the status of gRPC, which follows the message.
func (overGRPC) answer(response *http.Response, text []byte, err error) (got answer, encoded []byte) {
	switch {
	case response.StatusCode != http.StatusOK: // of a proxy, or of a server that knows no gRPC
		if got = ofStatus(response); got.outcome == sent {
			got.outcome = rejected
		}
		return got, nil
	case !strings.HasPrefix(response.Header.Get("Content-Type"), typeGRPC):
		return answer{outcome: rejected, reason: "the answer is not of gRPC"}, nil
	case err != nil:
		return answer{outcome: dropped, reason: transport.Reason(err)}, nil
	case len(text) > mostAnswer:
		return answer{outcome: rejected, reason: "the answer is too long"}, nil
	}
	said := response.Trailer
	if said.Get("Grpc-Status") == "" { // an answer without a message has all in its headers
		said = response.Header
	}
	code := codes.Unknown
	if n, err := strconv.ParseUint(said.Get("Grpc-Status"), 10, 32); err == nil {
		code = codes.Code(n)
	}
	wait, asked := retryInfo(said.Get("Grpc-Status-Details-Bin"))
	reason := fmt.Sprintf("gRPC status %s", code)
	switch code {
	case codes.OK:
		return answer{outcome: sent}, message(text)
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return answer{outcome: dropped, reason: reason, wait: wait}, nil
	case codes.ResourceExhausted:
		if asked { // otherwise the request is too large
			return answer{outcome: dropped, reason: reason, wait: wait}, nil
		}
	}
	return answer{outcome: rejected, reason: reason}, nil
}

// retryInfo returns the wait that a receiver asks for in the details of a status (base64), and whether it does.
func retryInfo(details string) (wait time.Duration, asked bool) {
	encoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "="))
	said := new(status.Status)
	if err != nil || proto.Unmarshal(encoded, said) != nil {
		return 0, false
	}
	for _, detail := range said.GetDetails() {
		info := new(errdetails.RetryInfo)
		if detail.UnmarshalTo(info) == nil {
			return transport.Wait(info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// message returns the message in a body, or nil if it is not exactly one that is not compressed.
func message(text []byte) []byte {
	if len(text) < frameHead || text[0] != 0 || int64(binary.BigEndian.Uint32(text[1:frameHead])) != int64(len(text)-frameHead) {
		return nil
	}
	return text[frameHead:]
}
