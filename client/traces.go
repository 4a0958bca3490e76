package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// Publisher publishes traces to one ingest, registers the cards of their agents and requests
// the end of sessions. It owns the retries: after a 503 it repeats the same request after the
// time that the service states; if the service is unreachable, it retries with growing pauses.
// Its methods may be called from any goroutine.
type Publisher struct {
	URL      string        // http://host:port or https://host:port
	Token    string        // empty if ingest requires none
	HTTP     *http.Client  // with certificates of its own, for example; nil is http.DefaultClient
	Patience time.Duration // how long to retry without progress; 0 is DefaultPatience
	Waiting  func(error)   // called with the reason before each retry; optional
	From     string        // which program asks, for the operator's ledger: "console"; empty for others
}

// DefaultPatience is longer than a restart of the service.
const DefaultPatience = 2 * time.Minute

// Statuses of a published line.
const (
	Accepted  = "accepted"
	Duplicate = "duplicate"
	Refused   = "refused"
	Forbidden = "forbidden" // the token may not publish for this agent

	retryLater = "retry" // not stored; the line itself is not at fault
)

// Outcome is the result for one line.
type Outcome struct {
	TraceID string         `json:"trace_id"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`

	Warnings []schema.Warning `json:"warnings"` // of a stored line
}

// final reports whether the line need not be sent again.
func (o *Outcome) final() bool { return o.Status != "" && o.Status != retryLater }

// The most that Publish sends in one request. A single longer line is a request of its own.
const (
	requestLines = 2000
	requestBytes = 8 << 20
)

// Publish publishes lines and returns the outcome of each. A line is one trace as JSON without
// a line break; it is sent unchanged. The lines are sent in their order, in requests of limited
// size. A line is sent again, with the same bytes, only while its outcome is unknown; so
// "duplicate" means that the line was stored before this call, or by a request whose answer was
// lost. After an error, a line with an unknown result has an empty outcome. The error is a
// *Problem if ingest refused a whole request.
func (p *Publisher) Publish(ctx context.Context, lines [][]byte) ([]Outcome, error) {
	outcomes := make([]Outcome, len(lines))
	for from := 0; from < len(lines); {
		to, size := from, 0
		for to < len(lines) && to-from < requestLines && (to == from || size+len(lines[to]) < requestBytes) {
			size += len(lines[to]) + 1
			to++
		}
		if err := p.publish(ctx, lines[from:to], outcomes[from:to]); err != nil {
			return outcomes, fmt.Errorf("publish traces: %w", err)
		}
		from = to
	}
	return outcomes, nil
}

// publish sends the lines of one request until each has its outcome.
func (p *Publisher) publish(ctx context.Context, lines [][]byte, outcomes []Outcome) error {
	left := make([]int, len(lines)) // indexes of the lines without an outcome
	for i := range left {
		left[i] = i
	}
	return p.persist(ctx, func(progress func()) error {
		var body bytes.Buffer
		for _, i := range left {
			body.Write(lines[i])
			body.WriteByte('\n')
		}
		got, err := p.send(ctx, http.MethodPost, "/v1/traces", "application/x-ndjson", body.Bytes())
		if err != nil {
			return err
		}
		answered, err := got.outcomes(len(left))
		if err != nil {
			return err
		}
		var again []int
		for n, i := range left {
			if answered[n].final() {
				outcomes[i] = answered[n]
			} else {
				again = append(again, i)
			}
		}
		if len(again) < len(left) {
			progress()
		}
		if left = again; len(left) > 0 {
			return fmt.Errorf("%d lines were not stored: %w", len(left), got.problem())
		}
		return nil
	})
}

// PublishDocument publishes one trace as a document of its own. Its bytes may have line breaks
// and are sent unchanged. The error is a *Problem if ingest refused the request itself.
func (p *Publisher) PublishDocument(ctx context.Context, raw []byte) (outcome Outcome, err error) {
	err = p.persist(ctx, func(func()) error {
		got, err := p.send(ctx, http.MethodPost, "/v1/traces", "application/json", raw)
		if err != nil {
			return err
		}
		answered, err := got.outcomes(1)
		if err != nil {
			return err
		}
		if !answered[0].final() {
			return got.problem()
		}
		outcome = answered[0]
		return nil
	})
	if err != nil {
		return outcome, fmt.Errorf("publish a trace: %w", err)
	}
	return outcome, nil
}

// PublishSpan publishes one span of OpenTelemetry, as an OTLP request in JSON. The outcome names no trace,
// and does not distinguish a duplicate. The error is a *Problem if ingest refused the request itself.
func (p *Publisher) PublishSpan(ctx context.Context, raw []byte) (outcome Outcome, err error) {
	err = p.persist(ctx, func(func()) error {
		got, err := p.send(ctx, http.MethodPost, "/otlp/v1/traces", "application/json", raw)
		if err != nil {
			return err
		}
		switch {
		case got.code == http.StatusOK:
		case got.temporary():
			return got.problem()
		default:
			return backoff.Permanent(got.problem())
		}
		var answered struct {
			PartialSuccess struct {
				RejectedSpans int64  `json:"rejectedSpans,string"`
				ErrorMessage  string `json:"errorMessage"`
			} `json:"partialSuccess"`
		}
		if err := json.Unmarshal(got.body, &answered); err != nil {
			return backoff.Permanent(fmt.Errorf("what answers there is no ingest of Plumbline: %w", err))
		}
		outcome = Outcome{Status: Accepted}
		if said := answered.PartialSuccess; said.RejectedSpans > 0 {
			outcome = rejectedSpan(said.ErrorMessage)
		}
		return nil
	})
	if err != nil {
		return outcome, fmt.Errorf("publish a span: %w", err)
	}
	return outcome, nil
}

// rejectedSpan returns the outcome of a span from what ingest says of it: "refused: FAULT; refused: FAULT". The status is not repeated
// in the fault.
func rejectedSpan(text string) Outcome {
	status, text := Refused, "; "+text
	if strings.Contains(text, "; "+Forbidden+": ") {
		status = Forbidden
	}
	text = strings.ReplaceAll(text, "; "+status+": ", "; ")
	return Outcome{Status: status, Faults: []schema.Fault{{Message: strings.TrimPrefix(text, "; ")}}}
}

// outcomes decodes the answer to n lines, one outcome each; empty after the point where the
// answer breaks off. The error is permanent unless the request may be repeated.
func (a *answer) outcomes(n int) ([]Outcome, error) {
	outcomes := make([]Outcome, n)
	found := false
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	for decoder.More() {
		var line struct {
			Line    int `json:"line"`
			Through int `json:"through"`
			Outcome
		}
		if err := decoder.Decode(&line); err != nil {
			break // the answer broke off, or is that of a proxy
		}
		for i := line.Line; i > 0 && i <= min(max(line.Line, line.Through), n); i++ {
			outcomes[i-1], found = line.Outcome, true
			line.Faults = nil // they concern the first of several lines
		}
	}
	if found || a.temporary() {
		return outcomes, nil
	}
	return nil, backoff.Permanent(a.problem())
}

// temporary reports whether an answer, which may be a proxy's, says that the same request can
// succeed later.
func (a *answer) temporary() bool {
	switch a.code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// EndSession requests that a session be sealed.
func (p *Publisher) EndSession(ctx context.Context, agentID, sessionID string) error {
	_, err := p.post(ctx, "/v1/sessions/end", map[string]string{"agent_id": agentID, "session_id": sessionID})
	if err != nil {
		return fmt.Errorf("end session %q of agent %q: %w", sessionID, agentID, err)
	}
	return nil
}

// MarkDeadLetters marks dead letters, named by the digests of their bytes, with what was done
// about them. The error is a *Problem if ingest refused it.
func (p *Publisher) MarkDeadLetters(ctx context.Context, mark, note string, digests []string) error {
	_, err := p.post(ctx, "/v1/dead-letters/marks", map[string]any{"mark": mark, "note": note, "digests": digests})
	if err != nil {
		return fmt.Errorf("mark dead letters: %w", err)
	}
	return nil
}

// post posts a question as JSON.
func (p *Publisher) post(ctx context.Context, path string, question any) (*answer, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return p.do(ctx, http.MethodPost, path, "application/json", body)
}

// do repeats a request until it succeeds or is refused.
func (p *Publisher) do(ctx context.Context, method, path, mediaType string, body []byte) (got *answer, err error) {
	err = p.persist(ctx, func(func()) error {
		if got, err = p.send(ctx, method, path, mediaType, body); err != nil {
			return err
		}
		switch {
		case got.code < 300:
			return nil
		case got.temporary():
			return got.problem()
		default:
			return backoff.Permanent(got.problem())
		}
	})
	return got, err
}

// send makes one request. Its error may be retried, unless it is permanent.
func (p *Publisher) send(ctx context.Context, method, path, mediaType string, body []byte) (*answer, error) {
	address := strings.TrimSuffix(p.URL, "/") + path
	over := *cmp.Or(p.HTTP, http.DefaultClient)
	if over.CheckRedirect == nil {
		over.CheckRedirect = sameMethod
	}
	return request(ctx, &over, p.Token, method, address, mediaType, body, math.MaxInt64, transport.HeaderFrom, p.From)
}

// sameMethod refuses a redirection that would turn a request with a body into a GET without one.
func sameMethod(next *http.Request, via []*http.Request) error {
	if next.Method != via[0].Method || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}
