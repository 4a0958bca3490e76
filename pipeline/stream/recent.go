package stream

// recent remembers what a committer published last, so that a record that comes
// again need not spoil the atomic batch of its neighbours: the broker refuses a
// batch whole for one known id. It only guesses, and forgets: the broker decides.
type recent [1 << 16]uint64 // fingerprints, each in the place that its low bits say

func (r *recent) place(e *entry) *uint64 { return &r[e.fingerprint%uint64(len(r))] }

// split parts a batch, in its order, into what seems new, which is remembered,
// and what seems to be known.
func (r *recent) split(batch []*entry) (fresh, known []*entry) {
	fresh = batch[:0]
	for _, e := range batch {
		place := r.place(e)
		if e.known = *place == e.fingerprint; e.known {
			known = append(known, e)
			continue
		}
		*place = e.fingerprint
		fresh = append(fresh, e)
	}
	return fresh, known
}

// forgetFailed forgets what was not stored.
func (r *recent) forgetFailed(batch []*entry) {
	for _, e := range batch {
		if place := r.place(e); e.outcome.Err != nil && *place == e.fingerprint {
			*place = 0
		}
	}
}
