package similarity

import "github.com/plumbline/plumbline/schema"

// Feature is one component of a sparse vector: a key such as "value:honesty"
// and its weight.
type Feature struct {
	Key    string
	Weight float64
}

// Vector is a sparse vector. Each key occurs once, in order of first appearance.
type Vector []Feature

// The kinds of features of AAP section 8.3: the part of a key up to the colon.
const (
	kindAction     = "action:"
	kindCategory   = "category:"
	kindActionName = "action_name:"
	kindValue      = "value:"

	keyEvaluated   = "escalation:evaluated"
	keyRequired    = "escalation:required"
	keyNotRequired = "escalation:not_required"
	keyConfidence  = "confidence"
)

// TraceFeatures appends the features of t to dst[:0] and returns the vector. All keys share one
// string that does not alias the trace, so the caller may keep them.
func TraceFeatures(t *schema.Trace, dst Vector) Vector {
	var keys keyring
	keys.grow(t)
	dst = append(dst[:0],
		Feature{keys.join(kindAction, string(t.Action.Type)), 1},
		Feature{keys.join(kindCategory, string(t.Action.Category)), 1})
	if t.Action.Name != "" {
		dst = append(dst, Feature{keys.join(kindActionName, t.Action.Name), 1})
	}
	seen := newSeen(t.Decision.ValuesApplied)
	for i, value := range t.Decision.ValuesApplied {
		if seen.first(i) {
			dst = append(dst, Feature{keys.join(kindValue, value), 1})
		}
	}
	dst = appendEscalation(dst, &t.Escalation)
	if t.Decision.HasConfidence {
		dst = append(dst, Feature{keyConfidence, t.Decision.Confidence})
	}
	return dst
}

func appendEscalation(dst Vector, e *schema.Escalation) Vector {
	if !e.Present {
		return dst
	}
	if e.Evaluated {
		dst = append(dst, Feature{keyEvaluated, 1})
	}
	if e.Required {
		return append(dst, Feature{keyRequired, 1})
	}
	return append(dst, Feature{keyNotRequired, 1})
}
