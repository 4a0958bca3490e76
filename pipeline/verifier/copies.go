package verifier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// A copy is another message with the same bytes: a publisher sent a trace again. Readers see the copy
// that was received first, and of the same verdict the one that was reached first. So a copy is judged
// as if it had been received when the first one was, and alerts are those of the verdict that readers see.

// openRow is a row whose verdict or alerts may be others if its trace is stored already: its verdict
// depends on when it was received or judged, or its message was delivered before.
type openRow struct {
	row     int // of the batch
	key     store.TraceKey
	verdict schema.Verdict
}

// open reports whether the row of a message is left open.
func (j *judgement) open(m *stream.Message) bool { return j.dated || m.Redelivered }

// leaveOpen adds the row that was added last to those that settle decides about.
func (b *batch) leaveOpen(j *judgement) {
	b.open = append(b.open, openRow{row: b.rows.Len() - 1, key: store.KeyOf(&j.trace), verdict: cloned(&j.verdict)})
}

// cloned returns a verdict that shares no slices with v, which is reused.
func cloned(v *schema.Verdict) schema.Verdict {
	c := *v
	c.Violations, c.Warnings, c.Findings = slices.Clone(v.Violations), slices.Clone(v.Warnings), slices.Clone(v.Findings)
	m := &c.Metadata
	m.ChecksPerformed, m.AbsentTriggers = slices.Clone(m.ChecksPerformed), slices.Clone(m.AbsentTriggers)
	m.Similarity.Similarities = slices.Clone(m.Similarity.Similarities)
	return c
}

// settle decides about the open rows of a batch. It judges copies again, by the earliest receipt, and adds
// the alerts. It runs before the rows are inserted, and continues after an error.
func (v *verifier) settle(ctx context.Context, b *batch) error {
	if b.settled == len(b.open) {
		return nil
	}
	keys := make([]store.TraceKey, len(b.open))
	for i := range b.open {
		keys[i] = b.open[i].key
	}
	kept, err := v.rows.LookUpTraces(ctx, keys)
	if err != nil {
		return err
	}
	var begun []store.TraceKey // of messages that were delivered before, and have verdicts
	for i := range b.open {
		if o := &b.open[i]; b.messageOf(o.row).Redelivered && kept.HasVerdicts(o.key.Digest) {
			begun = append(begun, o.key)
		}
	}
	stored, err := v.rows.LookUpVerdicts(ctx, begun)
	if err != nil {
		return err
	}
	for inBatch := b.rowsOf(keys); b.settled < len(b.open); b.settled++ {
		if err := v.settleRow(ctx, b, &b.open[b.settled], kept, stored, inBatch); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) messageOf(row int) *stream.Message { return &b.messages[b.rowOf[row]] }

// rowsOf returns the rows of the batch with these traces, by trace.
func (b *batch) rowsOf(keys []store.TraceKey) map[schema.Digest][]int {
	rows := make(map[schema.Digest][]int, len(keys))
	for i := range keys {
		rows[keys[i].Digest] = nil
	}
	for row := range b.rows.Len() {
		digest := b.rows.ID(row).Digest
		if list, asked := rows[digest]; asked {
			rows[digest] = append(list, row)
		}
	}
	return rows
}

func (v *verifier) settleRow(ctx context.Context, b *batch, o *openRow, kept *store.TraceResults, stored map[schema.Digest]*schema.Verdict, inBatch map[schema.Digest][]int) (err error) {
	m, digest := b.messageOf(o.row), o.key.Digest
	earliest := kept.Earliest(digest, m.Received)
	before := map[schema.Digest]bool{} // VerdictID of verdicts on earlier copies in the batch
	for _, row := range inBatch[digest] {
		if other := b.messageOf(row); other.Sequence < m.Sequence && !b.rows.LeftOut(row) {
			before[b.rows.VerdictID(row)] = true
			if other.Received.Before(earliest) {
				earliest = other.Received
			}
		}
	}
	if earliest.Before(m.Received) {
		if err := v.judgeCopy(ctx, b, o, earliest); err != nil {
			return err
		}
		inBatch[digest] = append(inBatch[digest], o.row)
	}
	seen := &o.verdict
	switch id := store.VerdictID(&seen.Metadata); {
	case before[id]: // the earlier copy has the alerts
		seen = nil
	case !kept.HasVerdict(digest, id):
	case m.Redelivered: // the process may have ended before it published the alerts
		seen = stored[id]
	default: // the message that stored the verdict has been done since, and has the alerts
		seen = nil
	}
	if seen != nil {
		if b.alerts, err = appendAlerts(b.alerts, seen); err != nil {
			return err
		}
	}
	v.metrics.judged(&o.verdict)
	return nil
}

// judgeCopy replaces an open row by one that is judged by the earliest receipt.
func (v *verifier) judgeCopy(ctx context.Context, b *batch, o *openRow, earliest time.Time) error {
	var trace schema.Trace
	var verdict schema.Verdict
	message, bench := b.rowOf[o.row], &v.late.rechecking
	m := &b.messages[message]
	if refusal, err := bench.admit(&trace, m); err != nil || refusal != nil {
		return fmt.Errorf("trace %s of agent %s is no longer a valid trace: %v, %w", o.verdict.TraceID, o.verdict.AgentID, refusal, err)
	}
	if _, err := bench.verify(ctx, &trace, &verdict, earliest, time.Now()); err != nil {
		return err
	}
	b.rows.LeaveOut(o.row)
	b.rows.Add(&trace, bench.meta(&trace, m, v.source.StreamCreated()), &verdict)
	b.rowOf = append(b.rowOf, message)
	o.row, o.verdict = b.rows.Len()-1, verdict
	return nil
}
