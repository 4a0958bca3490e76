package coherence

import (
	"fmt"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// The limits of a comparison. A card beyond them cannot take part in a handshake. They bound
// the cost of a check, and its result fits into a message.
const (
	maxValues     = 1000     // declared values, and as many refused ones
	maxValueBytes = 64 << 10 // of the declared values
)

// side is a party prepared for comparison.
type side struct {
	party    Party
	reasons  []schema.Reason // why the card is not in force; their Side is empty
	declared []string        // without duplicates, in order; empty where the card is not in force
	position map[string]int  // of the declared values
	refuses  map[string]bool
	defined  map[string]schema.ValueDefinition
	kin      map[string][]kinship // by each of the two values
	states   map[subsumption]bool
	envelope aap.Envelope
}

func newSide(p Party, at time.Time) *side {
	s := &side{party: p, reasons: standing(p, at), position: map[string]int{}}
	if len(s.reasons) > 0 {
		return s
	}
	values := &p.Card.Values
	for _, value := range values.Declared {
		if !s.holds(value) {
			s.position[value] = len(s.declared)
			s.declared = append(s.declared, value)
		}
	}
	s.refuses = setOf(values.ConflictsWith)
	s.envelope = aap.NewEnvelope(p.Card)
	s.relate(values.Definitions)
	return s
}

func (s *side) inForce() bool { return len(s.reasons) == 0 }

func (s *side) digest() schema.Digest {
	if s.party.Card == nil {
		return schema.Digest{}
	}
	return s.party.Card.Digest
}

// holds reports whether the card declares the value.
func (s *side) holds(value string) bool {
	_, ok := s.position[value]
	return ok
}

// standing returns the reasons why a party's card is not in force.
func standing(p Party, at time.Time) []schema.Reason {
	if p.Card == nil {
		return []schema.Reason{{
			Code: schema.ReasonCardUnknown, AgentID: p.AgentID, CardID: p.CardID,
			Description: "nobody has the card " + quote(p.CardID),
		}}
	}
	card := p.Card
	var reasons []schema.Reason
	because := func(holds bool, code, description string) {
		if holds {
			reasons = append(reasons, schema.Reason{
				Code: code, AgentID: card.AgentID, CardID: card.CardID, Description: description,
			})
		}
	}
	because(p.CardID != "" && p.CardID != card.CardID, schema.ReasonCardMismatch,
		"the message names the card "+quote(p.CardID))
	because(p.AgentID != "" && p.AgentID != card.AgentID, schema.ReasonAgentMismatch,
		"the message is of the agent "+quote(p.AgentID))
	because(card.IssuedAt.After(at.Add(FreshWindow)), schema.ReasonCardNotIssued,
		"the card is issued at "+stamp(card.IssuedAt)+", which is still to come")
	because(!card.ExpiresAt.IsZero() && at.After(card.ExpiresAt), schema.ReasonCardExpired,
		"the card expired at "+stamp(card.ExpiresAt))
	because(!p.RevokedAt.IsZero() && !p.RevokedAt.After(at), schema.ReasonCardRevoked,
		"the card was revoked at "+stamp(p.RevokedAt))
	because(p.Newer != "" && len(reasons) == 0, schema.ReasonCardSuperseded, "the agent has the newer card "+quote(p.Newer)+" in force")
	because(tooMany(&card.Values), schema.ReasonTooManyValues,
		fmt.Sprintf("a handshake compares cards of up to %d values within %d bytes", maxValues, maxValueBytes))
	return reasons
}

func tooMany(v *schema.Values) bool {
	size := 0
	for _, value := range v.Declared {
		size += len(value)
	}
	return len(v.Declared) > maxValues || len(v.ConflictsWith) > maxValues || size > maxValueBytes
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// quote quotes a value or an id for a sentence, shortened.
func quote(s string) string { return strconv.Quote(schema.Clip(s, 64)) }

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// distinct returns each name once, in order of first appearance.
func distinct(lists ...[]string) []string {
	seen, once := map[string]bool{}, []string{}
	for _, list := range lists {
		for _, name := range list {
			if !seen[name] {
				seen[name] = true
				once = append(once, name)
			}
		}
	}
	return once
}

// selected returns the names for which keep is true; never nil.
func selected(names []string, keep func(string) bool) []string {
	kept := []string{}
	for _, name := range names {
		if keep(name) {
			kept = append(kept, name)
		}
	}
	return kept
}
