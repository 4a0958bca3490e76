package ingest

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Reader is what a database adds to ingest (reading.Service). Ingest itself knows no database, and
// works without a Reader.
type Reader interface {
	// AddRoutes adds the routes for readers.
	AddRoutes(router *request.Router)
	// Sequences returns, for traces by their event times and digests, the sequence in stream TRACES
	// at which each may be stored, or 0. It is a hint: it may be wrong, and it may be missing.
	Sequences(ctx context.Context, at []time.Time, digests []schema.Digest) []uint64
}

// Holder reports whether stream TRACES has records at sequences (stream.Client).
type Holder interface {
	Held(ctx context.Context, records []stream.Record, sequences []uint64) ([]bool, error)
}

const (
	// recognised is how long the broker recognises the copy of a message.
	recognised = stream.DefaultDuplicateWindow
	// confirmTime is how long the broker may take to confirm earlier copies. What it has not
	// confirmed by then is published.
	confirmTime = time.Second
)

// oldLine is an admitted line whose own timestamp is before the broker's duplicate window. If it was
// published at its time, the broker has forgotten it.
type oldLine struct {
	result, record int // indexes of the chunk
	at             time.Time
}

// dropStored finds old lines that are already in stream TRACES, answers them as duplicates, and
// removes them from the records to publish. The database only says where to look. The broker decides:
// a line is a duplicate if the stream has its bytes for its agent at that sequence now. So an answer
// "duplicate" never rests on a row, and all other lines are published as if nothing was asked.
func (u *upload) dropStored(ctx context.Context) {
	at, digests, records := make([]time.Time, len(u.old)), make([]schema.Digest, len(u.old)), make([]stream.Record, len(u.old))
	for i, old := range u.old {
		at[i], records[i] = old.at, u.records[old.record]
		digests[i] = records[i].Digest
	}
	sequences := u.reader.Sequences(ctx, at, digests)
	if !slices.ContainsFunc(sequences, func(sequence uint64) bool { return sequence > 0 }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	held, err := u.holder.Held(ctx, records, sequences)
	if err != nil { // what was not confirmed is published, which is always right
		u.env.Log.Debug("earlier copies of lines were not all confirmed", "error", err)
	}
	for i, old := range u.old {
		if held[i] {
			u.finish(&u.results[old.result], duplicate, records[i].Digest)
			u.records[old.record].Data = nil
		}
	}
	u.records = slices.DeleteFunc(u.records, func(r stream.Record) bool { return r.Data == nil })
}

// finish sets the outcome of a line that is stored, with a warning if another record has its name.
func (u *upload) finish(r *result, as status, digest schema.Digest) {
	r.status = as
	if u.conflicts.note(r.name, digest) {
		r.warnings = append(r.warnings, conflictWarning)
	}
}
