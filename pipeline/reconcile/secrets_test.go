package reconcile_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A secret in the id of a session or in the name of an action or a tool does not appear in public
// texts: the operator's ledger, the texts of violations and findings, and the names of files. The
// comparison still finds each bundle's claim.
func TestSecretsOfNamesAreNotRepeated(t *testing.T) {
	const secret, session, action = "hunter2", "s?access_token=hunter2", "Bearer hunter2hunter2"
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	executed := pipelinetest.Trace("executed", "a", "ac", session, "2026-11-01T00:00:02Z", action)
	denied := pipelinetest.Trace("denied", "a", "ac", session, "2026-11-01T00:00:01Z", action)
	denied = pipelinetest.Record("a", bytes.Replace(denied.Data, []byte(`"type":"execute"`), []byte(`"type":"deny"`), 1))
	s.Publish(t, denied, executed)
	s.end(t, session, 1)
	s.rest(t)
	if summary, found := s.compare(t); summary.Differences != 0 || summary.Counts.Claims != 1 {
		t.Errorf("%d claims, found\n%s", summary.Counts.Claims, lines(found))
	}
	said := map[string]string{
		"the ledger":          s.ledgerText(t),
		"violations":          s.texts(t, "SELECT description FROM violations"),
		"findings":            s.texts(t, "SELECT arrayStringConcat(findings.description) FROM verdicts"),
		"findings of session": s.texts(t, "SELECT arrayStringConcat(finding_descriptions) FROM visible_session_verdicts"),
		"files":               s.texts(t, "SELECT path FROM bundles"),
	}
	for where, text := range said {
		if strings.Contains(text, secret) {
			t.Errorf("%s: the secret is in %s", where, text)
		}
	}
	for where, want := range map[string]string{"the ledger": `"s?access_token=[REDACTED]"`, "violations": `"Bearer [REDACTED]"`, "findings of session": `"Bearer [REDACTED]"`} {
		if !strings.Contains(said[where], want) {
			t.Errorf("%s: no %s in %s", where, want, said[where])
		}
	}
}

// ledgerText returns all messages of stream LEDGER.
func (s *site) ledgerText(t testing.TB) string {
	t.Helper()
	consumer, err := s.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Ledger})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	state, err := s.Client.StreamState(t.Context(), stream.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Fetch(t.Context(), nil, int(state.Messages), 16<<20, time.Minute)
	if err != nil || uint64(len(messages)) != state.Messages {
		t.Fatalf("%d of %d messages, %v", len(messages), state.Messages, err)
	}
	var text strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&text, "%s %s\n", m.ID(), m.Data)
	}
	return text.String()
}

// texts returns the rows of a query with one column.
func (s *site) texts(t testing.TB, query string) string {
	t.Helper()
	result, err := s.Store.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, row...)
	}
	return text.String()
}
