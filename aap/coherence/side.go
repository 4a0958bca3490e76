package coherence

import (
	"cmp"
	"fmt"
	"slices"
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
	states   map[subsumption]bool // the subsumptions that the card's definitions state
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
	s.defined = make(map[string]schema.ValueDefinition, len(values.Definitions))
	s.kin, s.states = map[string][]kinship{}, map[subsumption]bool{}
	for _, def := range values.Definitions {
		s.defined[def.ID] = def
		for _, narrower := range def.Subsumes {
			pair := subsumption{def.ID, narrower}
			if s.states[pair] {
				continue
			}
			s.states[pair] = true
			s.kin[narrower] = append(s.kin[narrower], kinship{def.ID, pair})
			s.kin[def.ID] = append(s.kin[def.ID], kinship{narrower, pair})
		}
	}
	for _, kin := range s.kin { // the order of a card's members has no meaning
		slices.SortFunc(kin, func(a, b kinship) int {
			return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.broader, b.broader))
		})
	}
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
	size := 0
	for _, value := range card.Values.Declared {
		size += len(value)
	}
	tooMany := len(card.Values.Declared) > maxValues || len(card.Values.ConflictsWith) > maxValues || size > maxValueBytes
	because(tooMany, schema.ReasonTooManyValues,
		fmt.Sprintf("a handshake compares cards of up to %d values within %d bytes", maxValues, maxValueBytes))
	return reasons
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
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return !keep(name) })
}

// subsumption states that acting by the broader value satisfies the narrower. Statements are
// used literally; no chains are inferred from them.
type subsumption struct {
	broader, narrower string
}

// kinship is a subsumption as seen from one of its values.
type kinship struct {
	other string
	subsumption
}

// automatic is step 1 of AAP section 6.5 for a value that refuser refuses and holder declares.
// The conflict is resolved if, according to the refuser's card, one of its values subsumes the
// refused value or is subsumed by it. Of several such values the refuser's foremost one counts:
// kin.
func automatic(value string, refuser, holder *side) (kin string, resolved bool, why string) {
	var best *kinship
	for _, k := range refuser.kin[value] {
		if refuser.holds(k.other) && (best == nil || refuser.before(k.other, best.other)) {
			best = &k
		}
	}
	if best == nil {
		for _, k := range holder.kin[value] {
			if refuser.holds(k.other) {
				return "", false, "only the card that declares " + quote(value) + " says that " + quote(k.broader) + " subsumes " +
					quote(k.narrower) + ": a refusal is lifted by the card that refuses, or by its principal"
			}
		}
		return "", false, "no value of the refusing card subsumes " + quote(value) + " or is subsumed by it"
	}
	reverse := subsumption{best.narrower, best.broader}
	if !refuser.states[reverse] && !holder.states[reverse] {
		return best.other, true, quote(best.broader) + " subsumes " + quote(best.narrower) + " and governs both"
	}
	pair := quote(best.broader) + " and " + quote(best.narrower) + " are said to subsume each other"
	first, ok := foremost(best.other, refuser, value, holder)
	switch {
	case !ok:
		return best.other, false, pair + ", and neither hierarchy nor priority decides between them"
	case first == value && !refuser.states[subsumption{value, best.other}]:
		return best.other, false, pair + ", and a card's own rank does not put its value above the refusal of another"
	}
	return best.other, true, pair + "; " + quote(first) + " governs by hierarchy and priority"
}

// before reports whether a ranks before b; s declares both. Priority decides where both have
// one, and the order of declaration otherwise.
func (s *side) before(a, b string) bool {
	return cmp.Or(s.compare(s.defined[a], s.defined[b]), cmp.Compare(s.position[a], s.position[b])) < 0
}

// foremost returns the value of the card that ranks first.
func (s *side) foremost(values []string) string {
	return slices.MinFunc(values, func(a, b string) int { return s.compare(s.defined[a], s.defined[b]) })
}

// compare ranks two values by priority. In a lexicographic hierarchy the smaller number ranks
// first, as in the specification's example. In a weighted hierarchy the greater weight ranks
// first. A contextual hierarchy has no ranks.
func (s *side) compare(a, b schema.ValueDefinition) int {
	if !a.HasPriority || !b.HasPriority {
		return 0
	}
	switch s.party.Card.Values.Hierarchy {
	case "lexicographic":
		return cmp.Compare(a.Priority, b.Priority)
	case "weighted":
		return cmp.Compare(b.Priority, a.Priority)
	}
	return 0
}

// foremost ranks two values of two cards. Their ranks are comparable where both cards have the
// same hierarchy: by priority, and in a lexicographic hierarchy without priorities by order of
// declaration.
func foremost(a string, ofA *side, b string, ofB *side) (first string, ok bool) {
	hierarchy := ofA.party.Card.Values.Hierarchy
	if hierarchy != ofB.party.Card.Values.Hierarchy {
		return "", false
	}
	defA, defB := ofA.defined[a], ofB.defined[b]
	order := ofA.compare(defA, defB)
	if hierarchy == "lexicographic" && !defA.HasPriority && !defB.HasPriority {
		order = cmp.Compare(ofA.position[a], ofB.position[b])
	}
	switch {
	case order < 0:
		return a, true
	case order > 0:
		return b, true
	}
	return "", false
}
