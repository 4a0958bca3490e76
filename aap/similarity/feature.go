package similarity

import (
	"strings"

	"github.com/plumbline/plumbline/schema"
)

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
	if e := &t.Escalation; e.Present {
		if e.Evaluated {
			dst = append(dst, Feature{keyEvaluated, 1})
		}
		if e.Required {
			dst = append(dst, Feature{keyRequired, 1})
		} else {
			dst = append(dst, Feature{keyNotRequired, 1})
		}
	}
	if t.Decision.HasConfidence {
		dst = append(dst, Feature{keyConfidence, t.Decision.Confidence})
	}
	return dst
}

// keyring builds the keys of one trace in one allocation. A builder with enough capacity never
// moves its memory, so its earlier strings stay valid.
type keyring struct {
	b strings.Builder
}

// grow reserves memory for all keys of t.
func (k *keyring) grow(t *schema.Trace) {
	size := len(kindAction) + len(t.Action.Type) + len(kindCategory) + len(t.Action.Category) +
		len(kindActionName) + len(t.Action.Name)
	for _, value := range t.Decision.ValuesApplied {
		size += len(kindValue) + len(value)
	}
	k.b.Grow(size)
}

func (k *keyring) join(kind, name string) string {
	start := k.b.Len()
	k.b.WriteString(kind)
	k.b.WriteString(name)
	return k.b.String()[start:]
}

// scanLimit is the length up to which scanning a list is faster than a map.
const scanLimit = 32

// seen detects first appearances in a list of names.
type seen struct {
	names []string
	index map[string]int // of the first appearance; nil for a short list
}

func newSeen(names []string) seen {
	s := seen{names: names}
	if len(names) <= scanLimit {
		return s
	}
	s.index = make(map[string]int, len(names))
	for i, name := range names {
		if _, dup := s.index[name]; !dup {
			s.index[name] = i
		}
	}
	return s
}

// first reports whether names[i] is the first appearance of that name.
func (s seen) first(i int) bool {
	if s.index != nil {
		return s.index[s.names[i]] == i
	}
	for _, name := range s.names[:i] {
		if name == s.names[i] {
			return false
		}
	}
	return true
}
