package publisher

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/schema"
)

// Statuses of a line that was sent.
const (
	Accepted  = "accepted"
	Duplicate = "duplicate"
	Refused   = "refused"
	Forbidden = "forbidden" // the token may not publish for this agent

	again = "retry" // not stored; the line itself is not at fault
)

// Outcome is the result for one line.
type Outcome struct {
	TraceID string         `json:"trace_id"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`

	Warnings []schema.Warning `json:"warnings"` // of a stored line
}

// Send publishes lines, none of them blank, and returns the outcome of each. After an
// error, a line with an unknown result has an empty outcome.
func (c *Client) Send(ctx context.Context, lines [][]byte) ([]Outcome, error) {
	outcomes := make([]Outcome, len(lines))
	left := make([]int, len(lines)) // indexes of the lines without an outcome
	for i := range left {
		left[i] = i
	}
	err := c.persist(ctx, func(p *pauses) error {
		before := len(left)
		err := c.sendLeft(ctx, lines, outcomes, &left, p)
		if len(left) < before {
			p.Reset()
		}
		return err
	})
	if err != nil {
		return outcomes, fmt.Errorf("send traces: %w", err)
	}
	return outcomes, nil
}

// sendLeft sends the remaining lines in one request, and records the outcomes in the answer.
func (c *Client) sendLeft(ctx context.Context, lines [][]byte, outcomes []Outcome, left *[]int, p *pauses) error {
	var body bytes.Buffer
	for _, i := range *left {
		body.Write(lines[i])
		body.WriteByte('\n')
	}
	got, err := c.once(ctx, http.MethodPost, "/v1/traces", "application/x-ndjson", body.Bytes())
	if err != nil {
		return err
	}
	told, err := got.outcomes(len(*left))
	if err != nil {
		return err
	}
	rest := (*left)[:0:0]
	for n, i := range *left {
		if told[n].Status == "" || told[n].Status == again {
			rest = append(rest, i)
			continue
		}
		outcomes[i] = told[n]
	}
	*left = rest
	if len(rest) == 0 {
		return nil
	}
	p.after = got.after
	return fmt.Errorf("%d lines were not stored: %w", len(rest), got.problem())
}

// outcomes decodes the answer to n lines, one outcome each; empty after the point where the
// answer breaks off. The error is permanent unless the request may be repeated.
func (a *answer) outcomes(n int) ([]Outcome, error) {
	told := make([]Outcome, n)
	found := false
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	for decoder.More() {
		var line struct {
			Line    int `json:"line"`
			Through int `json:"through"`
			Outcome
		}
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("read the answer (HTTP %d): %w", a.code, err)
		}
		for i := max(line.Line, 1); i <= min(max(line.Line, line.Through), n); i++ {
			told[i-1], found = line.Outcome, true
			line.Faults = nil // they concern the first of several lines
		}
	}
	if found || a.code == http.StatusServiceUnavailable {
		return told, nil
	}
	return nil, backoff.Permanent(a.problem())
}
