package similarity

import (
	"strings"

	"github.com/plumbline/plumbline/schema"
)

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
