package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// overHTTP is OTLP/HTTP with protobuf.
type overHTTP struct{}

func (overHTTP) request(ctx context.Context, address, signal string, encoded []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/"+signal, bytes.NewReader(encoded))
	if err == nil {
		request.Header.Set("Content-Type", "application/x-protobuf")
	}
	return request, err
}

// answer is that of the status of HTTP. A body that cannot be read changes nothing.
func (overHTTP) answer(response *http.Response, text []byte, err error) (got answer, encoded []byte) {
	if err != nil || len(text) > mostAnswer {
		text = nil
	}
	return ofStatus(response), text
}

// ofStatus returns what the status of an answer says.
func ofStatus(response *http.Response) answer {
	got := answer{outcome: rejected, reason: fmt.Sprintf("status %d", response.StatusCode)} // redirects, too
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		got.outcome, got.wait = dropped, transport.RetryAfter(response.Header.Get("Retry-After"), time.Now())
	default:
		if response.StatusCode/100 == 2 {
			got.outcome = sent
		}
	}
	return got
}
