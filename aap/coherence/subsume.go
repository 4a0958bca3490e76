package coherence

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

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

// relate collects the subsumptions that the card's definitions state.
func (s *side) relate(definitions []schema.ValueDefinition) {
	s.defined = make(map[string]schema.ValueDefinition, len(definitions))
	s.kin, s.states = map[string][]kinship{}, map[subsumption]bool{}
	for _, def := range definitions {
		s.defined[def.ID] = def
		for _, narrower := range def.Subsumes {
			s.state(subsumption{def.ID, narrower})
		}
	}
	for _, kin := range s.kin { // the order of a card's members has no meaning
		slices.SortFunc(kin, func(a, b kinship) int {
			return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.broader, b.broader))
		})
	}
}

func (s *side) state(pair subsumption) {
	if s.states[pair] {
		return
	}
	s.states[pair] = true
	s.kin[pair.narrower] = append(s.kin[pair.narrower], kinship{pair.broader, pair})
	s.kin[pair.broader] = append(s.kin[pair.broader], kinship{pair.narrower, pair})
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
		return "", false, unstated(value, refuser, holder)
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

// unstated explains why no subsumption was found.
func unstated(value string, refuser, holder *side) string {
	for _, k := range holder.kin[value] {
		if refuser.holds(k.other) {
			return "only the card that declares " + quote(value) + " says that " + quote(k.broader) + " subsumes " +
				quote(k.narrower) + ": a refusal is lifted by the card that refuses, or by its principal"
		}
	}
	return "no value of the refusing card subsumes " + quote(value) + " or is subsumed by it"
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
