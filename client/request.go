package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// ErrInsecure is wrapped if a connection is not allowed for handshake messages:
// neither TLS 1.3 nor within this machine (AAP section 9.4).
var ErrInsecure = transport.ErrInsecure

// Problem is a service's refusal of a request (docs/PUBLISH.md and docs/HANDSHAKE.md list the codes of Word).
type Problem struct {
	Code    int            `json:"-"`     // the HTTP status code
	Word    string         `json:"error"` // "replayed", "stale", "no_card", …
	Message string         `json:"message"`
	Faults  []schema.Fault `json:"faults"`

	// RetryAfter is how long to wait before the same request is repeated, zero if the
	// service does not state it.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the message, the codes and the faults.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (HTTP %d", p.Message, p.Code)
	if p.Word != "" {
		text += " " + p.Word
	}
	text += ")"
	for _, fault := range p.Faults {
		text += "; " + fault.String()
	}
	return text
}

// ReadProblem reads the body of a refusal, for implementations of Transport. For a body in
// another form it returns a Problem with the status code alone.
func ReadProblem(code int, body []byte) *Problem {
	p := new(Problem)
	if err := json.Unmarshal(body, p); err != nil || p.Message == "" {
		p = &Problem{Message: "the service answered " + strconv.Quote(http.StatusText(code))}
		if code < http.StatusBadRequest {
			p.Message = "what answers there is no service of Plumbline: " + strconv.Quote(http.StatusText(code))
		}
	}
	p.Code = code
	return p
}

// answer is an HTTP answer.
type answer struct {
	code       int
	retryAfter time.Duration // zero if it is not stated, or stated as a date
	body       []byte
}

// request sends one HTTP request and returns the answer, of which it reads at most limit bytes. headers are names and
// values in turn; one with an empty value is left out.
func request(ctx context.Context, client *http.Client, token, method, address, mediaType string, body []byte, limit int64, headers ...string) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	if token = strings.TrimSpace(token); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	a := &answer{code: response.StatusCode, body: text}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		a.retryAfter = time.Duration(seconds) * time.Second
	}
	return a, nil
}

// problem reads the answer as a refusal.
func (a *answer) problem() *Problem {
	p := ReadProblem(a.code, a.body)
	p.RetryAfter = a.retryAfter
	return p
}

// pauses computes the pause between attempts: the one that the service requested, otherwise
// a growing one.
type pauses struct {
	*backoff.ExponentialBackOff
	requested time.Duration // by the last answer
}

// NextBackOff returns the pause before the next attempt, or backoff.Stop.
func (p *pauses) NextBackOff() time.Duration {
	pause := p.ExponentialBackOff.NextBackOff()
	if pause != backoff.Stop && p.requested > 0 {
		pause, p.requested = p.requested, 0
	}
	return pause
}

// persist repeats attempt until it succeeds, fails permanently, or makes no progress for as long as the
// publisher's patience. An attempt calls progress if it failed but achieved a part of its work.
func (p *Publisher) persist(ctx context.Context, attempt func(progress func()) error) error {
	wait := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(cmp.Or(p.Patience, DefaultPatience)))}
	notify := func(err error, _ time.Duration) {
		if p.Waiting != nil {
			p.Waiting(err)
		}
	}
	return backoff.RetryNotify(func() error {
		err := attempt(wait.Reset)
		if problem := new(Problem); errors.As(err, &problem) {
			wait.requested = problem.RetryAfter
		}
		return err
	}, backoff.WithContext(wait, ctx), notify)
}

// attempts is how often a Runtime sends a request without an answer, and pause is the wait in
// between if the service states none.
const (
	attempts = 3
	pause    = time.Second
)

// insist calls ask, and repeats the same request while the service does not answer.
func insist[A any](ctx context.Context, h *HTTP, path string, question any) (*A, error) {
	for attempt := 1; ; attempt++ {
		answer, err := ask[A](ctx, h, path, question)
		wait, unanswered := unanswered(err)
		if !unanswered || attempt == attempts {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// unanswered reports whether an error of ask may be temporary, and how long to wait.
func unanswered(err error) (wait time.Duration, yes bool) {
	if problem := new(Problem); errors.As(err, &problem) {
		return cmp.Or(problem.RetryAfter, pause), problem.Code == http.StatusServiceUnavailable
	}
	lost := new(url.Error)
	return pause, errors.As(err, &lost) || errors.Is(err, io.ErrUnexpectedEOF)
}

// maxDecisionBytes is enough for any answer about a message, which may repeat the message's text.
const maxDecisionBytes = 4 << 20

// ask posts a question as JSON and reads the answer. The error is a *Problem if the service refused the request.
func ask[A any](ctx context.Context, h *HTTP, path string, question any) (*A, error) {
	raw, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	got, err := h.post(ctx, path, raw, maxDecisionBytes)
	if err != nil {
		return nil, err
	}
	answer := new(A)
	if err := json.Unmarshal(got, answer); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return answer, nil
}
