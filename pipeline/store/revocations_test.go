package store

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// revocation returns a revocation of card ac-1, which the test's traces name.
func revocation(at time.Time) schema.Revocation {
	return schema.Revocation{CardID: "ac-1", AgentID: nasty, RevokedAt: at, Reason: nasty}
}

func TestRevocationIsStoredOnce(t *testing.T) {
	s, _ := open(t)
	first := revocation(firstReceived)
	for _, at := range []time.Time{firstReceived.Add(time.Hour), firstReceived, firstReceived} {
		if err := s.InsertRevocations(t.Context(), []schema.Revocation{revocation(at)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[uint64](t, s, "SELECT count() FROM revocations FINAL"); n != 1 {
		t.Errorf("%d revocations, want 1", n)
	}
	card := &schema.Card{CardID: "ac-1", AgentID: nasty, IssuedAt: firstEvent, Raw: []byte("{}")}
	other := &schema.Card{CardID: "ac-2", AgentID: nasty, IssuedAt: firstEvent, Raw: []byte("{}")}
	if err := s.InsertCards(t.Context(), firstReceived, []*schema.Card{card, other}); err != nil {
		t.Fatal(err)
	}
	if got := one[time.Time](t, s, "SELECT assumeNotNull(revoked_at) FROM visible_cards WHERE card_id = 'ac-1'"); !got.Equal(first.RevokedAt) {
		t.Errorf("revoked at %s, want %s", got, first.RevokedAt)
	}
	if got := one[string](t, s, "SELECT revocation_reason FROM visible_cards WHERE card_id = 'ac-1'"); got != nasty {
		t.Errorf("reason %q", got)
	}
	if !one[bool](t, s, "SELECT revoked_at IS NULL AND revocation_reason = '' FROM visible_cards WHERE card_id = 'ac-2'") {
		t.Error("a card that was not revoked is shown as revoked")
	}
}

// Traces of a revoked card are judged again if their own time is that of the revocation or later,
// or if they were received after it. Each is judged again once. A copy that was received after it changes
// nothing.
func TestTracesOfRevokedCards(t *testing.T) {
	s, _ := open(t)
	revoked := firstEvent.Add(10 * time.Second)
	b := s.NewTraceBatch()
	add := func(n int, received time.Time) {
		trace := numbered(t, n)
		m := meta(trace, uint64(n))
		m.Received = received
		b.Add(trace, m, cleanVerdict(trace))
	}
	before, after := revoked, revoked.Add(time.Nanosecond)
	add(9, before)  // a second before it, and received in time
	add(8, after)   // before it, and received after it: backdated
	add(10, before) // at the same moment
	add(11, before) // later, by a fast clock
	insert(t, s, b)
	b = s.NewTraceBatch()
	add(9, after) // the copy
	insert(t, s, b)
	again := []schema.Revocation{revocation(revoked), {CardID: "ac-2", RevokedAt: firstEvent}}
	var sequences []uint64
	var last *StoredTrace
	for range 4 {
		for stored, err := range s.TracesOfRevokedCards(t.Context(), again, last, 1) {
			if err != nil {
				t.Fatal(err)
			}
			last, sequences = stored, append(sequences, stored.Sequence)
		}
	}
	if !slices.Equal(sequences, []uint64{8, 10, 11}) {
		t.Errorf("one after the other they have the sequences %d", sequences)
	}
	for _, want := range []int{3, 0} {
		verdicts := s.NewVerdictBatch()
		for stored, err := range s.TracesOfRevokedCards(t.Context(), again, nil, 10) {
			if err != nil {
				t.Fatal(err)
			}
			trace := admit(t, string(stored.Raw))
			v := cleanVerdict(trace)
			v.Metadata.CardRevokedAt = revoked
			v.Timestamp = firstReceived.Add(-time.Hour) // by a slow clock
			v.Findings = []schema.Remark{{Type: schema.CardRevoked, Severity: schema.SeverityCritical}}
			verdicts.Add(trace, stored.Meta(), v)
		}
		if verdicts.Len() != want {
			t.Fatalf("%d traces must be judged again, want %d", verdicts.Len(), want)
		}
		if err := s.InsertVerdicts(t.Context(), verdicts); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Findings(t.Context())
	if err != nil || len(found[schema.CardRevoked]) != 3 {
		t.Errorf("findings %v, error %v", found, err)
	}
	if c := counts(t, s); c.Verdicts != 4 {
		t.Errorf("%+v, want one current verdict a trace", c)
	}
	if n := one[uint64](t, s, "SELECT count() FROM verdicts FINAL"); n != 7 {
		t.Errorf("%d verdicts are stored, want the first 4 and the 3 of the revocation", n)
	}
}

// After a failed attempt, the lookup of a verdict with a revocation does not find the earlier one
// without it.
func TestRevokedVerdictIsNotTheStoredOne(t *testing.T) {
	s, _ := open(t)
	trace := numbered(t, 1)
	insert(t, s, batchOf(s, trace))
	v := cleanVerdict(trace)
	v.Metadata.CardRevokedAt = firstEvent
	m := meta(trace, 1)
	m.Redelivered = true
	for range 2 {
		b := s.NewVerdictBatch()
		b.Add(trace, m, v)
		if err := s.InsertVerdicts(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[uint64](t, s, "SELECT count() FROM verdicts"); n != 2 {
		t.Errorf("%d verdict rows, want 2", n)
	}
}
