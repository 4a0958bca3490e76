package pipelinetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// Corpus is the recorded corpus next to the checkout.
type Corpus struct {
	Dir     string
	Records []stream.Record // in the file's order
	Cards   [][]byte
	// Violations maps a type to the ids of the traces that have it under profile spec, in which a
	// log trigger is not a violation.
	Violations map[string]map[string]bool
}

// ReadCorpus reads the recorded corpus. It skips the test if there is none.
func ReadCorpus(t testing.TB) *Corpus {
	t.Helper()
	c := &Corpus{Dir: published.Path(t, "corpus"), Cards: published.Lines(t, "corpus/cards.jsonl"), Violations: map[string]map[string]bool{}}
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		trace, err := schema.Admit("", line)
		if err != nil {
			t.Fatal(err)
		}
		c.Records = append(c.Records, stream.Record{Agent: trace.AgentID, Data: trace.Raw, Digest: trace.Digest})
	}
	for _, line := range published.Lines(t, "corpus/expected.jsonl.gz") {
		var expected struct {
			TraceID string   `json:"trace_id"`
			Types   []string `json:"without_log_triggers"`
		}
		if err := json.Unmarshal(line, &expected); err != nil {
			t.Fatal(err)
		}
		for _, kind := range expected.Types {
			if c.Violations[kind] == nil {
				c.Violations[kind] = map[string]bool{}
			}
			c.Violations[kind][expected.TraceID] = true
		}
	}
	return c
}

// Part returns the corpus of every n-th session.
func (c *Corpus) Part(t testing.TB, n int) *Corpus {
	t.Helper()
	part := &Corpus{Dir: c.Dir, Cards: c.Cards, Violations: map[string]map[string]bool{}}
	sessions := map[[2]string]int{}
	for _, r := range c.Records {
		trace, err := schema.Admit(r.Agent, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		session := [2]string{trace.AgentID, schema.SessionID(trace)}
		if _, begun := sessions[session]; !begun {
			sessions[session] = len(sessions)
		}
		if sessions[session]%n != 0 {
			continue
		}
		part.Records = append(part.Records, r)
		for kind, ids := range c.Violations {
			if ids[trace.TraceID] {
				if part.Violations[kind] == nil {
					part.Violations[kind] = map[string]bool{}
				}
				part.Violations[kind][trace.TraceID] = true
			}
		}
	}
	return part
}

// CheckViolations checks that found are the corpus's violations, id for id.
func (c *Corpus) CheckViolations(t testing.TB, found map[string][]string) {
	t.Helper()
	for kind := range found {
		if c.Violations[kind] == nil {
			t.Errorf("found %d traces with %s, want none", len(found[kind]), kind)
		}
	}
	for kind, want := range c.Violations {
		if len(found[kind]) != len(want) {
			t.Errorf("found %d traces with %s, want %d", len(found[kind]), kind, len(want))
		}
		for _, id := range found[kind] {
			if !want[id] {
				t.Errorf("trace %s has %s, which is not expected", id, kind)
			}
		}
	}
}

// Card returns a small valid card of an agent.
func Card(cardID, agentID string) []byte {
	return fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":"2026-01-01T00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[],"forbidden_actions":["pay"]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, cardID, agentID)
}

// Trace returns a small valid trace of an execute action, in the category that Card gives it.
func Trace(traceID, agentID, cardID, sessionID, timestamp, action string) stream.Record {
	category := "bounded"
	if action == "pay" {
		category = "forbidden"
	}
	raw := fmt.Appendf(nil, `{"trace_id":%q,"agent_id":%q,"card_id":%q,"timestamp":%q,`+
		`"action":{"type":"execute","name":%q,"category":%q},`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":["honesty"]},`+
		`"context":{"session_id":%q}}`, traceID, agentID, cardID, timestamp, action, category, sessionID)
	return Record(agentID, raw)
}

// EndsInNUL returns the first of record(0), record(1), … whose digest ends in a NUL byte. A
// database that converts a FixedString to text may cut off such bytes.
func EndsInNUL(record func(i int) stream.Record) stream.Record {
	for i := 0; ; i++ {
		if r := record(i); r.Digest[len(r.Digest)-1] == 0 {
			return r
		}
	}
}
