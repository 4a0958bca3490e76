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
		w.Message = "no card is registered here under this id: the trace is stored, and judged once the card is registered"
	case card.AgentID != t.AgentID:
		w.Code = schema.WarnForeignCard
		w.Message = fmt.Sprintf("this card belongs to agent %q", schema.Clip(card.AgentID, schema.MaxIDBytes))
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

// conflicts remembers what this process stored last: a fingerprint of the record for each
// (agent_id, trace_id). Its size is fixed. The name determines the index of an entry, so a later
// entry may overwrite an earlier one.
type conflicts struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries [1 << 16]struct{ name, record uint64 }
}

// name returns the fingerprint of an (agent_id, trace_id).
func (c *conflicts) name(agentID, traceID string) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(agentID) // it never fails
	_ = h.WriteByte(0)
	_, _ = h.WriteString(traceID)
	return h.Sum64()
}

// note remembers a stored record, and reports whether a different one is remembered under its
// name.
func (c *conflicts) note(name uint64, digest schema.Digest) (conflict bool) {
	record := binary.LittleEndian.Uint64(digest[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := &c.entries[name%uint64(len(c.entries))]
	conflict = entry.name == name && entry.record != record
	entry.name, entry.record = name, record
	return conflict
}

var conflictWarning = schema.Warning{
	Code: schema.WarnConflict, Pointer: "/trace_id",
	Message: "another record of this agent has this trace_id: both are stored and judged; give each trace an id of its own",
}
