package stream

// recent remembers what a committer published last. The broker refuses a whole batch because of
// one known id, so a probably known record is sent without its neighbours. recent is only a
// guess, and it forgets: the broker decides.
type recent [1 << 16]uint64 // fingerprints, each at the index of its low bits

func (r *recent) place(e *entry) *uint64 { return &r[e.fingerprint%uint64(len(r))] }

// split divides a batch, in order, into entries that seem new and entries that seem known. It
// remembers the new ones.
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

// forgetFailed removes entries that were not stored.
func (r *recent) forgetFailed(batch []*entry) {
	for _, e := range batch {
		if place := r.place(e); e.outcome.Err != nil && *place == e.fingerprint {
			*place = 0
		}
	}
}
