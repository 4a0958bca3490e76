package keyring

import "slices"

// Newest returns the last line, which holds all keys.
func (r *Ring) Newest() List {
	l := r.last
	l.Keys, l.Signatures = slices.Clone(l.Keys), slices.Clone(l.Signatures)
	return l
}
