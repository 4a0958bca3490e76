package similarity

import (
	"math"
	"slices"
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

// otherFeatures is the maximum number of features of a trace, values aside.
const otherFeatures = 6

// TraceFeatures appends the features of t to dst[:0] and returns the vector. All keys share one
// string that does not alias the trace, so the caller may keep them.
func TraceFeatures(t *schema.Trace, dst Vector) Vector {
	size := len(kindAction) + len(t.Action.Type) + len(kindCategory) + len(t.Action.Category) + len(kindActionName) + len(t.Action.Name)
	for _, value := range t.Decision.ValuesApplied {
		size += len(kindValue) + len(value)
	}
	var keys keyring
	keys.b.Grow(size)
	dst = append(slices.Grow(dst[:0], otherFeatures+len(t.Decision.ValuesApplied)),
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

// Cosine returns the cosine of two vectors, 0 when one of them has length zero. It is not
// rounded; see Round4.
func Cosine(a, b Vector) float64 {
	lengths := math.Sqrt(square(a)) * math.Sqrt(square(b))
	if lengths == 0 {
		return 0
	}
	return dot(a, b) / lengths
}

func dot(a, b Vector) float64 {
	at := newPlaces(b)
	var sum float64
	for _, f := range a {
		if i, ok := at.find(b, f.Key); ok {
			sum += f.Weight * b[i].Weight
		}
	}
	return sum
}

// Add adds v to sum key by key and returns sum, with new keys at its end.
func Add(sum, v Vector) Vector {
	before := sum // v has each key once, so its own new keys need not be searched
	at := newPlaces(before)
	for _, f := range v {
		if i, ok := at.find(before, f.Key); ok {
			sum[i].Weight += f.Weight
			continue
		}
		sum = append(sum, f)
	}
	return sum
}

// Centroid divides sum in place by the number of vectors that were added to it. A key that a
// vector lacks counts as 0 in that vector.
func Centroid(sum Vector, vectors int) Vector {
	for i := range sum {
		sum[i].Weight /= float64(vectors)
	}
	return sum
}

// Compact returns a copy of v whose keys share one string, so a vector that is kept for long
// holds no memory of the traces.
func Compact(v Vector) Vector {
	size := 0
	for i := range v {
		size += len(v[i].Key)
	}
	var keys keyring
	keys.b.Grow(size)
	out := make(Vector, len(v))
	for i, f := range v {
		out[i] = Feature{keys.join(f.Key, ""), f.Weight}
	}
	return out
}

// Round4 rounds to four decimals, ties up, like every published score.
func Round4(x float64) float64 { return math.Floor(x*10000+0.5) / 10000 }

// places finds keys in a vector: by scanning a short one, and by a map in a long one, so a
// publisher cannot cause quadratic cost with a long list.
type places map[string]int

func newPlaces(v Vector) places {
	if len(v) <= scanLimit {
		return nil
	}
	p := make(places, len(v))
	for i, f := range v {
		p[f.Key] = i
	}
	return p
}

func (p places) find(v Vector, key string) (int, bool) {
	if p != nil {
		i, ok := p[key]
		return i, ok
	}
	for i := range v {
		if v[i].Key == key {
			return i, true
		}
	}
	return 0, false
}
