package publisher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/schema"
)

// Client publishes to one ingest. Its methods may be called from any goroutine.
type Client struct {
	URL      string        // http://host:port
	Token    string        // empty if ingest requires none
	Patience time.Duration // how long to retry without progress; 0 is DefaultPatience
	Waiting  func(error)   // called with the reason before each retry; optional
}

// DefaultPatience is longer than a restart of the service.
const DefaultPatience = 2 * time.Minute

// Problem is the answer to a request that the service refused or could not process.
type Problem struct {
	Code    int            `json:"-"` // HTTP status
	Word    string         `json:"error"`
	Message string         `json:"message"`
	Faults  []schema.Fault `json:"faults"`
}

// Error returns the service's message and the status.
func (p *Problem) Error() string { return fmt.Sprintf("%s (HTTP %d)", p.Message, p.Code) }

// EndSession requests that a session be sealed.
func (c *Client) EndSession(ctx context.Context, agentID, sessionID string) error {
	body, err := json.Marshal(map[string]string{"agent_id": agentID, "session_id": sessionID})
	if err != nil {
		return err
	}
	if _, err := c.do(ctx, http.MethodPost, "/v1/sessions/end", "application/json", body); err != nil {
		return fmt.Errorf("end session %q of agent %q: %w", sessionID, agentID, err)
	}
	return nil
}

// answer is an HTTP answer.
type answer struct {
	code  int
	after time.Duration // when to try again; 0: not stated
	body  []byte
}

// do repeats a request until it succeeds or is refused.
func (c *Client) do(ctx context.Context, method, path, mediaType string, body []byte) (*answer, error) {
	var got *answer
	err := c.persist(ctx, func(p *pauses) (err error) {
		if got, err = c.once(ctx, method, path, mediaType, body); err != nil {
			return err
		}
		switch {
		case got.code < 300:
			return nil
		case got.code == http.StatusServiceUnavailable:
			p.after = got.after
			return got.problem()
		default:
			return backoff.Permanent(got.problem())
		}
	})
	return got, err
}

// once makes one request. Its error may be retried, unless it is permanent.
func (c *Client) once(ctx context.Context, method, path, mediaType string, body []byte) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		seconds = 0 // not stated, or stated as a date
	}
	return &answer{code: response.StatusCode, after: time.Duration(seconds) * time.Second, body: text}, nil
}

// problem decodes the body of a refusal.
func (a *answer) problem() *Problem {
	p := &Problem{}
	if err := json.Unmarshal(a.body, p); err != nil || p.Message == "" {
		p.Message = "the service answers " + strconv.Quote(http.StatusText(a.code))
	}
	p.Code = a.code
	return p
}
