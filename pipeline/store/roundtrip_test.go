package store

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

func TestTraceRoundTrip(t *testing.T) {
	s, _ := open(t)
	trace := numbered(t, 1)
	verdict := wholeVerdict(trace)
	m := meta(trace, 42)
	m.RetainUntil = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	b := s.NewTraceBatch()
	b.Add(trace, m, verdict)
	insert(t, s, b)

	got := sessionOf(t, s, trace)
	if len(got) != 1 {
		t.Fatalf("%d traces, want 1", len(got))
	}
	row := got[0]
	if !bytes.Equal(row.Raw, trace.Raw) || row.Digest != trace.Digest {
		t.Errorf("the evidence changed:\n%s\n%s", row.Raw, trace.Raw)
	}
	if !reflect.DeepEqual(row.Meta(), m) {
		t.Errorf("meta\n got %+v\nwant %+v", row.Meta(), m)
	}
	if !row.EventTime.Equal(trace.Timestamp) || !row.SessionEnd || row.SequenceNumber == nil || *row.SequenceNumber != 7 {
		t.Errorf("row %+v", row)
	}
	if !reflect.DeepEqual(row.Verdict, verdict) {
		t.Errorf("verdict\n got %+v\nwant %+v", row.Verdict, verdict)
	}
}

// Each expression reads one member of AAP section 5 from the live table.
func TestEveryMemberOfATraceCanBeRead(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	trace := numbered(t, 1)
	m := meta(trace, 1)
	m.OTelTraceID, m.OTelSpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	b.Add(trace, m, wholeVerdict(trace))
	insert(t, s, b)
	for expression, want := range map[string]string{
		"otel_trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "otel_span_id": "00f067aa0ba902b7",
		"action_type": "execute", "action_name": "purchase", "action_category": "bounded",
		"target_type": "product", "target_identifier": "p-1", "parameters": `{"amount":45}`,
		"toString(option_ids)": "['A','B']", "toString(option_descriptions)": "['first','second']",
		"toString(option_scores)": "[0.85,NULL]", "toString(option_scoring_factors)": "[{'cost':0.8},{}]",
		"toString(option_flags)": "[['sponsored'],[]]",
		"selected":               "A", "selection_reasoning": "best", "toString(values_applied)": "['honesty','privacy']",
		"toString(confidence)": "0.75", "toString(escalation_evaluated)": "true", "toString(escalation_required)": "true",
		"toString(triggers)": "['amount > 100']", "toString(triggers_matched)": "[false]", "toString(triggers_value_observed)": "['45']",
		"escalation_reason": "asked", "escalation_id": "esc-1", "escalation_status": "approved",
		"response_decision": "approved", "toString(response_time)": "2026-11-20 12:05:00.000000000",
		"toString(response_conditions)": "['max_price <= 50']",
		"session_id":                    "s-1", "toString(conversation_turn)": "5", "toString(prior_trace_ids)": "['tr-0']",
		"environment": `{"client":"web"}`, "toString(sequence_number)": "7", "toString(session_end)": "true",
		"tool_name": "shop.buy", "execution_inputs": `{"id":"p-1"}`, "execution_outputs": `{"ok":true}`,
		"toString(cost_cents)": "12", "execution_error": "none",
	} {
		if got := one[string](t, s, "SELECT toString("+expression+") FROM visible_traces"); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

func TestAbsentMembersAreAbsent(t *testing.T) {
	s, _ := open(t)
	insert(t, s, batchOf(s, simple(t, "tr-1", "agent", "s-1", "because")))
	for _, expression := range []string{
		"confidence IS NULL", "conversation_turn IS NULL", "sequence_number IS NULL", "NOT has_escalation",
		"NOT has_execution", "response_time IS NULL", "empty(prior_trace_ids)", "parameters = ''",
	} {
		if !one[bool](t, s, "SELECT "+expression+" FROM visible_traces") {
			t.Errorf("this condition does not hold: %s", expression)
		}
	}
}

// The caller may reuse its slices at once: the batch keeps only immutable strings of the caller.
func TestBatchCopiesWhatTheCallerReuses(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	for round := range 3 {
		b.Reset()
		for i := range 10 {
			trace := numbered(t, round*10+i)
			v := wholeVerdict(trace)
			b.Add(trace, meta(trace, uint64(round*10+i+1)), v)
			clear(trace.Decision.ValuesApplied)
			clear(trace.Context.PriorTraceIDs)
			clear(v.Violations)
			clear(v.Metadata.ChecksPerformed)
		}
		if b.Len() != 10 || b.Bytes() < 10*1000 {
			t.Fatalf("batch of %d traces, %d bytes", b.Len(), b.Bytes())
		}
		insert(t, s, b)
	}
	if n := one[uint64](t, s, "SELECT countIf(values_applied = ['honesty','privacy'] AND prior_trace_ids = ['tr-0']) FROM traces"); n != 30 {
		t.Errorf("%d of 30 traces have their arrays", n)
	}
	if n := one[uint64](t, s, "SELECT countIf(type IN ('UNBOUNDED_ACTION', 'UNDECLARED_VALUE') AND description != '') FROM violations"); n != 60 {
		t.Errorf("%d of 60 violations", n)
	}
}

// An emptied batch references no message.
func TestResetLetsGoOfMessages(t *testing.T) {
	s := Writer{tenant: "default"}
	b := s.NewTraceBatch()
	freed := make(chan struct{})
	func() {
		trace := numbered(t, 1)
		runtime.AddCleanup(&trace.Raw[0], func(struct{}) { close(freed) }, struct{}{})
		b.Add(trace, meta(trace, 1), wholeVerdict(trace))
	}()
	b.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(b)
			return
		case <-ctx.Done():
			t.Fatal("the message was not released")
		default:
		}
	}
}

// Column verdict_id equals VerdictID, whatever bytes the digests end in.
func TestVerdictIDIsTheColumns(t *testing.T) {
	s, _ := open(t)
	whole, cut, zero := schema.DigestOf([]byte("whole")), schema.DigestOf([]byte("cut")), schema.Digest{}
	clear(cut[30:])
	for i, c := range []struct {
		trace, card schema.Digest
		revoked     time.Time
	}{
		{whole, whole, time.Time{}}, {whole, whole, firstEvent}, {cut, whole, time.Time{}}, {whole, cut, time.Time{}},
		{cut, cut, firstEvent}, {whole, zero, time.Time{}}, {cut, zero, time.Time{}},
	} {
		trace := numbered(t, i)
		trace.Digest = c.trace
		v := wholeVerdict(trace)
		v.Metadata.CardDigest, v.Metadata.CardRevokedAt = c.card, c.revoked
		b := s.NewTraceBatch()
		b.Add(trace, meta(trace, 1), v)
		insert(t, s, b)
		got := one[string](t, s, "SELECT verdict_id || ' ' || trace_digest_hex || ' ' || card_digest_hex FROM verdicts WHERE trace_id = '"+trace.TraceID+"'")
		if want := fmt.Sprintf("%s %s %s", VerdictID(&v.Metadata), c.trace, c.card); got != want {
			t.Errorf("trace %s under card %s, revoked at %s: the columns are\n%s, want\n%s", c.trace, c.card, c.revoked, got, want)
		}
	}
}

// Values are stored and found unchanged, whatever they contain.
func TestHostileValuesAreVerbatim(t *testing.T) {
	s, _ := open(t)
	for i, hostile := range []string{
		`'; DROP TABLE traces; --`, "{x:String}", "a\x00b", "`traces`", `\`, `\'`, "tab\there\nand line\rend", "$1 ? @name",
		"\u2028 \U0001F600 ü", "%s %d", `"]}'`, strings.Repeat("'", 100),
	} {
		trace := simple(t, hostile+"-id", hostile+"-agent", hostile+"-session", hostile)
		v := wholeVerdict(trace)
		v.Violations[0].Description, v.Metadata.Profile = hostile, hostile
		b := s.NewTraceBatch()
		m := meta(trace, uint64(i+1))
		b.Add(trace, m, v)
		insert(t, s, b)
		insert(t, s, redelivered(s, trace, m, v))

		got := sessionOf(t, s, trace)
		if len(got) != 1 || !bytes.Equal(got[0].Raw, trace.Raw) || got[0].AgentID != trace.AgentID || !reflect.DeepEqual(got[0].Verdict, v) {
			t.Errorf("%q: read back %+v", hostile, got)
		}
		reports, err := s.Trace(t.Context(), trace.TraceID)
		if err != nil || len(reports) != 1 {
			t.Errorf("%q: %d reports, %v", hostile, len(reports), err)
		}
	}
	c := counts(t, s)
	if c.Traces != 12 || c.TraceRows != 12 {
		t.Errorf("%+v, want 12 traces in 12 rows", c)
	}
}

// redelivered returns a batch of the same message, delivered again.
func redelivered(s *Store, t *schema.Trace, m Meta, v *schema.Verdict) *TraceBatch {
	b := s.NewTraceBatch()
	m.Redelivered = true
	b.Add(t, m, v)
	return b
}
