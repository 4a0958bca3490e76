package integration_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// publisher is a simple client: it repeats every request that got no answer, or 503,
// unchanged.
type publisher struct {
	t      testing.TB
	url    string
	token  string
	client *http.Client // nil: http.DefaultClient, which waits for an answer without limit

	mu    sync.Mutex
	acked []schema.Digest // digests of the acknowledged records
}

// acknowledged records the digests that were acknowledged.
func (p *publisher) acknowledged(digests ...schema.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = append(p.acked, digests...)
}

// answered returns how many records were acknowledged.
func (p *publisher) answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// outcome is the result for a line.
type outcome struct {
	Line    int            `json:"line"`
	TraceID string         `json:"trace_id"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`
}

// publish sends lines, and repeats them until there is an answer for each.
// sent is optional. It is called once, when the whole first request has been sent.
func (p *publisher) publish(lines [][]byte, sent func()) (outcomes []outcome) {
	p.t.Helper()
	body := append(bytes.Join(lines, []byte("\n")), '\n')
	pipelinetest.Await(p.t, "an answer to published lines", func() bool {
		reader := io.Reader(bytes.NewReader(body))
		if sent != nil {
			reader, sent = io.MultiReader(reader, &atEnd{call: sent}), nil
		}
		code, answer := p.request(http.MethodPost, "/v1/traces", "application/x-ndjson", reader)
		if code == 0 || code == http.StatusServiceUnavailable {
			return false
		}
		outcomes = p.outcomes(answer)
		return true
	})
	if len(outcomes) != len(lines) {
		p.t.Fatalf("%d outcomes for %d lines", len(outcomes), len(lines))
	}
	for i, o := range outcomes {
		if o.Status == "accepted" || o.Status == "duplicate" {
			p.acknowledged(schema.DigestOf(lines[i]))
		}
	}
	return outcomes
}

func (p *publisher) outcomes(answer []byte) (outcomes []outcome) {
	p.t.Helper()
	for line := range bytes.Lines(answer) {
		var o outcome
		if err := json.Unmarshal(line, &o); err != nil {
			p.t.Fatalf("the answer %q: %v", answer, err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// register registers a card.
func (p *publisher) register(raw []byte) {
	p.t.Helper()
	var card struct {
		CardID string `json:"card_id"`
	}
	if err := json.Unmarshal(raw, &card); err != nil {
		p.t.Fatal(err)
	}
	p.until("register card "+card.CardID, http.MethodPut, "/v1/cards/"+url.PathEscape(card.CardID), raw)
}

// revoke revokes a card.
func (p *publisher) revoke(cardID string) {
	p.t.Helper()
	p.until("revoke card "+cardID, http.MethodPost, "/v1/cards/"+url.PathEscape(cardID)+"/revoke", []byte(`{"reason":"planted"}`))
}

// end requests sealing of a session with the traces that it has.
func (p *publisher) end(agentID, sessionID string) {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"agent_id": agentID, "session_id": sessionID})
	if err != nil {
		p.t.Fatal(err)
	}
	p.until("end session "+sessionID, http.MethodPost, "/v1/sessions/end", body)
}

// until repeats a request until it succeeds.
func (p *publisher) until(what, method, path string, body []byte) {
	p.t.Helper()
	pipelinetest.Await(p.t, what, func() bool {
		code, answer := p.request(method, path, "application/json", bytes.NewReader(body))
		if code >= 400 && code < 500 {
			p.t.Fatalf("%s: %d %s", what, code, answer)
		}
		return code >= 200 && code < 300
	})
}

// request makes one request; code is 0 if there was no answer.
func (p *publisher) request(method, path, mediaType string, body io.Reader) (code int, answer []byte) {
	p.t.Helper()
	if p.t.Context().Err() != nil {
		runtime.Goexit() // the test has failed meanwhile: nothing waits for this goroutine
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := cmp.Or(p.client, http.DefaultClient).Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

// atEnd is an empty reader that calls a function when it is read.
type atEnd struct{ call func() }

func (e *atEnd) Read([]byte) (int, error) {
	e.call()
	return 0, io.EOF
}

// read requests something that is stored, and decodes it if into is not nil.
func (p *publisher) read(path string, into any) (body []byte) {
	p.t.Helper()
	code, body := p.request(http.MethodGet, path, "", nil)
	if code != http.StatusOK {
		p.t.Fatalf("GET %s: %d %s", path, code, body)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			p.t.Fatalf("GET %s: %v", path, err)
		}
	}
	return body
}
