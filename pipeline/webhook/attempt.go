package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// outcome is the result of one attempt, and a label of the metrics.
type outcome string

const (
	delivered   outcome = "delivered"
	refused     outcome = "refused"     // the receiver does not take this alert
	unavailable outcome = "unavailable" // no answer, or the receiver says that it cannot take any now
	gone        outcome = "gone"        // 410: the receiver wants no more alerts
)

// answer is what an endpoint answered to one attempt.
type answer struct {
	outcome outcome
	reason  string        // for the log: a status, or why there is none
	wait    time.Duration // that the receiver asks for (Retry-After)
}

// mostAnswer is how much of an answer's body is read. Its contents are never used: a connection
// can be used again when its answer was read to the end.
const mostAnswer = 16 << 10

// send makes one attempt.
func send(ctx context.Context, client *http.Client, e *Endpoint, secrets []Secret, agent string, a *alert) answer {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(a.body))
	if err != nil {
		return answer{outcome: unavailable, reason: "the request cannot be made"}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", agent)
	Sign(request.Header, secrets, a.id, time.Now(), a.body)
	response, err := client.Do(request)
	if err != nil {
		return answer{outcome: unavailable, reason: transport.Reason(err)}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer)) // the status is the answer
	return answer{
		outcome: outcomeOf(response.StatusCode),
		reason:  fmt.Sprintf("status %d", response.StatusCode),
		wait:    transport.RetryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

func outcomeOf(status int) outcome {
	switch {
	case status >= 200 && status < 300:
		return delivered
	case status == http.StatusGone:
		return gone
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return unavailable
	}
	return refused // redirects, too
}
