package otel

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Answer returns an ExportTraceServiceResponse. It is a partial success if spans were rejected or there
// is a message, which is then a warning.
func Answer(encoding Encoding, rejected int64, message string) ([]byte, error) {
	r := ptraceotlp.NewExportResponse()
	if rejected > 0 || message != "" {
		r.PartialSuccess().SetRejectedSpans(rejected)
		r.PartialSuccess().SetErrorMessage(message)
	}
	if encoding == JSON {
		return r.MarshalJSON()
	}
	return r.MarshalProto()
}

// Status returns the body of an answer that is no success.
func Status(encoding Encoding, code codes.Code, message string) ([]byte, error) {
	s := &status.Status{Code: int32(code), Message: strings.ToValidUTF8(message, "\uFFFD")}
	var text []byte
	var err error
	if encoding == JSON {
		text, err = protojson.Marshal(s)
	} else {
		text, err = proto.Marshal(s)
	}
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	return text, nil
}

// Retry returns a google.rpc.Status that says after which time a call may be repeated.
func Retry(code codes.Code, message string, after time.Duration) ([]byte, error) {
	info, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		return nil, fmt.Errorf("encode a time to retry: %w", err)
	}
	text, err := proto.Marshal(&status.Status{Code: int32(code), Message: strings.ToValidUTF8(message, "\uFFFD"), Details: []*anypb.Any{info}})
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	return text, nil
}

// CodeOf returns the code of gRPC for a status of HTTP. Clients repeat a request after Unavailable, and
// after ResourceExhausted if the answer says when.
func CodeOf(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusRequestEntityTooLarge:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable, http.StatusRequestTimeout:
		return codes.Unavailable
	case http.StatusInternalServerError:
		return codes.Internal
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return codes.Unimplemented
	}
	return codes.InvalidArgument
}
