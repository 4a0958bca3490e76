package ingest

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
)

// warnings returns what may be unintended in the last admitted trace, except conflicts. Usually
// that is nil.
func (u *upload) warnings() []schema.Warning {
	t := &u.trace
	found := u.decoder.Warnings()
	if w, doubtful := u.cardWarning(t); doubtful {
		found = append(found, w)
	}
	return slices.Clone(found)
}

// cardWarning returns what is wrong with the card that a trace names, as far as this process
// knows the cards.
func (u *upload) cardWarning(t *schema.Trace) (w schema.Warning, doubtful bool) {
	card, state := u.cards.Standing(t.CardID, t.Timestamp)
	w.Pointer = "/card_id"
	switch {
	case card == nil:
		w.Code = schema.WarnUnknownCard
		w.Message = "no card is registered here under this id: the trace is kept, and judged once the card is"
	case card.AgentID != t.AgentID:
		w.Code = schema.WarnForeignCard
		w.Message = fmt.Sprintf("this card belongs to agent %q", clip(card.AgentID))
	case state == cards.Revoked:
		w.Code, w.Message = schema.WarnRevokedCard, "the card was revoked before the trace's timestamp"
	case state == cards.NotYetIssued:
		w.Code = schema.WarnCardNotIssued
		w.Message = "the card was issued at " + card.IssuedAt().Format(time.RFC3339) + ", after the trace's timestamp"
	case state == cards.Expired:
		w.Code = schema.WarnExpiredCard
		w.Message = "the card expired at " + card.ExpiresAt().Format(time.RFC3339) + ", before the trace's timestamp: register its successor"
	default:
		return w, false
	}
	return w, true
}

// stored remembers what this process stored last: a fingerprint of the record for each (agent_id,
// trace_id). Its size is fixed. The name determines the index of an entry, so a later entry may
// overwrite an earlier one.
type stored struct {
	seed maphash.Seed

	mu     sync.Mutex
	places [1 << 16]struct{ name, record uint64 }
}

func newStored() *stored { return &stored{seed: maphash.MakeSeed()} }

// name returns the fingerprint of an (agent_id, trace_id).
func (s *stored) name(agentID, traceID string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(agentID) // it never fails
	_ = h.WriteByte(0)
	_, _ = h.WriteString(traceID)
	return h.Sum64()
}

// note remembers a stored record, and reports whether a different one is remembered under its
// name.
func (s *stored) note(name uint64, digest schema.Digest) (conflict bool) {
	record := binary.LittleEndian.Uint64(digest[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	place := &s.places[name%uint64(len(s.places))]
	conflict = place.name == name && place.record != record
	place.name, place.record = name, record
	return conflict
}

var conflictWarning = schema.Warning{
	Code: schema.WarnConflict, Pointer: "/trace_id",
	Message: "another record of this agent has this trace_id: both are kept and judged; give each trace an id of its own",
}
