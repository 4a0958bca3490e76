package aap

import "strings"

// actions is a list of action names of a card. An entry "name: description" also matches its
// bare name.
type actions map[string]struct{}

func newActions(entries []string) actions {
	a := make(actions, len(entries))
	for _, entry := range entries {
		a[entry] = struct{}{}
		if name, _, described := strings.Cut(entry, ":"); described && strings.TrimSpace(name) != "" {
			a[strings.TrimSpace(name)] = struct{}{}
		}
	}
	return a
}

func (a actions) has(name string) bool {
	_, ok := a[name]
	return ok
}

// allow reports whether name, or every part of the compound name "a, b", is listed. An empty
// part matches nothing.
func (a actions) allow(name string) bool {
	if a.has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part == "" || !a.has(part) {
			return false
		}
	}
	return true
}

// touch reports whether name, or any part of it, is listed.
func (a actions) touch(name string) bool {
	if a.has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part != "" && a.has(part) {
			return true
		}
	}
	return false
}
