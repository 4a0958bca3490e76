package verifier

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/batch"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// intake is what one commit makes durable: messages, and all that judging them
// has produced. It is filled, committed and filled again.
type intake struct {
	meter    batch.Meter
	messages []stream.Message
	rows     *store.TraceBatch
	rowOf    []int // the message (by index) of each row
	receipts [subject.Partitions][]schema.Receipt
	alerts   []stream.Alert
	dead     []stream.DeadLetter
	unknown  map[string]bool // card ids that nobody had registered

	revocations int // that were known before the first of its traces was judged
}

// reset empties the intake and lets go of the messages.
func (in *intake) reset() {
	clear(in.messages)
	in.meter.Reset()
	in.messages, in.rowOf = in.messages[:0], in.rowOf[:0]
	in.rows.Reset()
	for p := range in.receipts {
		clear(in.receipts[p])
		in.receipts[p] = in.receipts[p][:0]
	}
	in.alerts, in.dead = in.alerts[:0], in.dead[:0]
	clear(in.unknown)
}

// take notes that the message is in hand; what follows is about the last one taken.
func (in *intake) take(m stream.Message, now time.Time) {
	in.messages = append(in.messages, m)
	in.meter.Add(len(m.Data), now)
}

// judged adds a trace with its verdict, and all that follows from it.
func (in *intake) judged(t *schema.Trace, v *schema.Verdict, meta store.Meta) (err error) {
	in.stored(t, v, meta)
	in.receipted(t, meta)
	if v.Status == schema.StatusCardUnknown {
		in.unknown[strings.Clone(v.CardID)] = true
	}
	in.alerts, err = appendAlerts(in.alerts, v)
	return err
}

// stored adds the rows of a trace and its verdict.
func (in *intake) stored(t *schema.Trace, v *schema.Verdict, meta store.Meta) {
	in.rows.Add(t, meta, v)
	in.rowOf = append(in.rowOf, len(in.messages)-1)
}

// receipted adds the receipt of a trace.
func (in *intake) receipted(t *schema.Trace, meta store.Meta) {
	in.receipts[meta.Partition] = append(in.receipts[meta.Partition], schema.Receipt{
		AgentID:   t.AgentID,
		SessionID: meta.SessionID,
		Sequence:  meta.Sequence,
		Digest:    t.Digest,
		EventTime: t.Timestamp,
		Bytes:     len(t.Raw),
		End:       t.Context.SessionEnd,
	})
}

// appendAlerts appends the alerts that a verdict raises: one for its violations
// and one for its findings, each the verdict as JSON.
func appendAlerts(alerts []stream.Alert, v *schema.Verdict) ([]stream.Alert, error) {
	if len(v.Violations) == 0 && len(v.Findings) == 0 {
		return alerts, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return alerts, fmt.Errorf("encode the verdict on %s: %w", v.TraceID, err)
	}
	raise := func(kind subject.AlertKind) {
		id := fmt.Sprintf("%s.%s", kind, store.VerdictID(&v.Metadata))
		alerts = append(alerts, stream.Alert{Kind: kind, Agent: v.AgentID, ID: id, Data: data})
	}
	if len(v.Violations) > 0 {
		raise(subject.AlertViolation)
	}
	if len(v.Findings) > 0 {
		raise(subject.AlertFinding)
	}
	return alerts, nil
}

// refused adds a message that can never be stored to the dead letters.
func (in *intake) refused(m *stream.Message, refusal *schema.Refusal) {
	in.dead = append(in.dead, deadLetter(m, refusal))
}

func deadLetter(m *stream.Message, refusal *schema.Refusal) stream.DeadLetter {
	return stream.DeadLetter{
		Stage:    stageName,
		Reason:   refusal.Reason,
		Faults:   refusal.Faults,
		Agent:    m.Agent,
		Subject:  m.Subject,
		Sequence: m.Sequence,
		Data:     stream.LetterData(m.Data),
	}
}

// unstorable moves rows that the database will never take to the dead letters;
// their receipts go, so that no session waits for them.
func (in *intake) unstorable(bad []store.BadRow) {
	gone := make(map[uint64]bool, len(bad))
	for _, row := range bad {
		m := &in.messages[in.rowOf[row.Index]]
		gone[m.Sequence] = true
		in.refused(m, &schema.Refusal{
			Reason: reasonUnstorable,
			Faults: []schema.Fault{{Message: row.Err.Error()}},
		})
	}
	for p, receipts := range in.receipts {
		kept := receipts[:0]
		for _, r := range receipts {
			if !gone[r.Sequence] {
				kept = append(kept, r)
			}
		}
		in.receipts[p] = kept
	}
}

// reasonUnstorable is the dead-letter reason of a row that ClickHouse refuses.
const reasonUnstorable = "unstorable"
