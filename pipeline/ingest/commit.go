package ingest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// commit makes the chunk durable and writes the outcome of its lines. The returned problem is the
// reason why the broker did not accept some of it.
func (u *upload) commit(ctx context.Context) *problem {
	outcomes, err := u.publish(ctx)
	var p *problem
	var notStored []schema.Fault
	if err != nil {
		u.suspect = true
		p = u.failure("publish traces", err)
		notStored = []schema.Fault{{Message: "not stored: " + p.Message}}
	}
	next := 0 // index of the next record
	for i := range u.results {
		r := &u.results[i]
		if r.status == pending {
			r.settle(outcomes, next, notStored)
			u.noteConflict(r, next)
			next++
		}
		u.answer.add(r)
		u.metrics.lines[r.status].Inc()
	}
	u.clear()
	return p
}

// publish returns an error if it may help to send the same records again. A record that the
// broker will never accept is reported only in its outcome.
func (u *upload) publish(ctx context.Context) ([]stream.Outcome, error) {
	if len(u.records) == 0 {
		return nil, nil
	}
	began := time.Now()
	// The request may end early because its body is cut off, but the lines that arrived are
	// complete.
	outcomes, err := u.traces.Publish(context.WithoutCancel(ctx), u.records)
	u.metrics.committed(len(u.records), time.Since(began))
	for i := range outcomes {
		if own := outcomes[i].Err; err == nil && own != nil && !errors.Is(own, stream.ErrTooLarge) {
			err = own
		}
	}
	return outcomes, err
}

// settle sets the status from the outcome of record i, if there is one. notStored is the reason
// why the broker did not accept it.
func (r *result) settle(outcomes []stream.Outcome, i int, notStored []schema.Fault) {
	switch {
	case i >= len(outcomes):
		r.status, r.faults = retry, notStored
	case errors.Is(outcomes[i].Err, stream.ErrTooLarge):
		r.status = refused
		r.faults = []schema.Fault{{Message: outcomes[i].Err.Error()}}
	case outcomes[i].Err != nil:
		r.status, r.faults = retry, notStored
	case outcomes[i].Duplicate:
		r.status = duplicate
	default:
		r.status = accepted
	}
}

// noteConflict adds a warning if another record was stored under the same ids as record i.
func (u *upload) noteConflict(r *result, i int) {
	if (r.status == accepted || r.status == duplicate) && u.stored.note(r.name, u.records[i].Digest) {
		r.warnings = append(r.warnings, conflictWarning)
	}
}

// reply writes the answer. A problem that left lines unread becomes a last line, which names the
// line from which to send again.
func (u *upload) reply(w http.ResponseWriter, p *problem) int {
	if p == nil && u.answered() == 0 {
		p = problemf(http.StatusBadRequest, "empty", "the body holds no trace: send one JSON object a line")
	}
	if u.answered() == 0 {
		return p.write(w)
	}
	code := u.answer.code()
	if p != nil {
		code = p.code
		p.setRetryAfter(w.Header())
	}
	if p != nil && u.unread {
		u.answer.add(&result{line: u.lines.number + 1, status: retry, faults: []schema.Fault{{
			Message: "this line and those after it were not read: " + p.Message,
		}}})
	}
	w.Header().Set("Content-Type", typesOfLines[0])
	return write(w, code, u.answer.text)
}
