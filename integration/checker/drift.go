package checker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Statuses of a point that is stored but not used.
const (
	statusLate     = "late"     // older than traces that were applied before it arrived
	statusConflict = "conflict" // another content of a trace id that is used
)

// series identifies what drift is measured over.
type series struct{ agentID, cardID string }

// measured is the stage's result for one trace.
type measured struct {
	status     string
	similarity *float64
	streak     uint32
}

// checkDrift: points and alerts equal those of a replay, which processes each
// (agent, card)'s history sequentially: by time, where a trace's time is at most its
// arrival, then by stream sequence, with the requested ends of sessions at their places. Traces
// that were not used had to be left out. The same history gives the loops of running sessions.
func (k *checker) checkDrift() {
	points, loops := k.points(), map[string]string{} // of the loops the id of the message, and the alert
	requested := k.requestedEnds()
	var acts session.Acts
	replayed := map[string]*schema.DriftAlert{} // events by the id of their message
	for series, history := range k.histories(points) {
		facts := k.facts(series.cardID)
		state, running := new(drift.State), new(session.Loops)
		ends := endsWithin(history, requested[series.agentID])
		for i, row := range history {
			trace, err := schema.Admit(row.AgentID, row.Raw)
			if err != nil {
				k.Errorf("drift: trace %s is stored and not valid: %v", row.TraceID, err)
				continue
			}
			if finding, found := running.Add(acts.Of(trace), trace.TraceID); found {
				finding.Description, _ = redact.AllRules.Message(finding.Description)
				alert := session.LoopAlert(row.AgentID, series.cardID, trace.Context.SessionID, row.Digest, row.EventTime, finding)
				loops[session.LoopAlertPrefix+alert.AlertID.String()] = k.text(alert)
			}
			sample := drift.SampleOf(trace, facts)
			sample.Order = made(row)
			step := state.Step(sample, k.Drift)
			k.comparePoint(row, step.Point, points[row.Digest])
			if step.Alert != nil {
				replayed[wire.DriftAlertID(step.Alert)] = step.Alert
			}
			for _, sessionID := range ends[i] {
				state.End(sessionID)
			}
		}
	}
	k.seen.Points = len(points)
	k.checkPoints(points)
	k.compareAlerts(replayed)
	k.compareAlertMessages(replayed)
	k.compareLoops("table loop_alerts", k.storedLoops(), loops)
	k.compareLoops("stream ALERTS", k.publishedLoops(), loops)
}

// requestedEnd is a request to end a session, and its place in stream TRACES.
type requestedEnd struct {
	sessionID string
	sequence  uint64
}

// requestedEnds returns the requests about each agent's sessions, in the order of the stream.
func (k *checker) requestedEnds() map[string][]requestedEnd {
	of := map[string][]requestedEnd{}
	for i := range k.messages {
		m := &k.messages[i]
		if end, requested := wire.EndOf(m.Agent, m.Data); requested {
			of[m.Agent] = append(of[m.Agent], requestedEnd{end.SessionID, m.Sequence})
		}
	}
	return of
}

// endsWithin returns the sessions that end after each trace of a history, by the trace's index: a
// request takes its place after the newest trace that was published before it.
func endsWithin(history []*store.StoredTrace, requested []requestedEnd) map[int][]string {
	ends := map[int][]string{}
	for _, end := range requested {
		for i := len(history) - 1; i >= 0; i-- {
			if history[i].Sequence < end.sequence {
				ends[i] = append(ends[i], end.sessionID)
				break
			}
		}
	}
	return ends
}

// storedLoops returns the alerts about loops of the table, by the ids of their messages.
func (k *checker) storedLoops() map[string]string {
	stored, err := k.Store.LoopAlerts(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	loops := map[string]string{}
	for i := range stored {
		loops[session.LoopAlertPrefix+stored[i].AlertID.String()] = k.text(&stored[i].LoopAlert)
	}
	return loops
}

// publishedLoops returns those of stream ALERTS.
func (k *checker) publishedLoops() map[string]string {
	loops := map[string]string{}
	for _, m := range k.readAll(stream.Alerts) {
		if id := m.ID(); strings.HasPrefix(id, session.LoopAlertPrefix) {
			loops[id] = string(m.Data)
		}
	}
	return loops
}

// compareLoops: a place has exactly the alerts about loops of the replay.
func (k *checker) compareLoops(place string, found, replayed map[string]string) {
	for id, alert := range found {
		switch want, exists := replayed[id]; {
		case !exists:
			k.Errorf("drift: %s has the loop %s, which is not in the replay", place, id)
		case alert != want:
			k.Errorf("drift: %s has the loop\n%s\nthe replay says\n%s", place, alert, want)
		}
	}
	for id := range replayed {
		if _, exists := found[id]; !exists {
			k.Errorf("drift: %s does not have the loop %s", place, id)
		}
	}
}

// checkPoints: each point belongs to a stored trace, or to a valid one that the database refused,
// and an alert opens where traces begin to drift, and closes where they have recovered.
func (k *checker) checkPoints(points map[schema.Digest]measured) {
	if visible := k.number("SELECT count() FROM visible_drift_points"); visible != len(points) {
		k.seen.Doubled += visible - len(points)
		k.Errorf("drift: %d points are visible, of %d traces", visible, len(points))
	}
	rows, letters := k.digests("traces"), k.digests("dead_letters")
	for digest := range points {
		if rows[digest]+letters[digest] == 0 {
			k.Errorf("drift: %s has a point, and is neither a row nor a dead letter", digest)
		}
	}
	const drifting = "SELECT agent_id, card_id, trace_id FROM (SELECT agent_id, card_id, trace_id, status, lagInFrame(status) OVER" +
		" (PARTITION BY agent_id, card_id ORDER BY least(event_time, received_at), stream_sequence ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before" +
		" FROM visible_drift_points WHERE status NOT IN ('late', 'conflict')) WHERE status = 'drift' AND before != 'drift'"
	k.compareEnds("opens", k.triples(drifting), k.triples("SELECT agent_id, card_id, last_trace_id FROM drift_alerts WHERE state = 'opened'"))
	const closing = "SELECT agent_id, card_id, toString(%s) FROM %s"
	closed := k.triples(fmt.Sprintf(closing, "assumeNotNull(closed_at)", "drift_alerts WHERE state = 'closed'"))
	recovered := k.triples(fmt.Sprintf(closing, "event_time", "visible_drift_points WHERE status = 'recovered'"))
	k.compareEnds("closes", recovered, closed)
}

// compareEnds requires that the alerts open, or close, at these traces.
func (k *checker) compareEnds(does string, traces, alerts map[[3]string]int) {
	for trace := range traces {
		if alerts[trace] == 0 {
			k.Errorf("drift: an alert %s at trace %s of agent %s, and no event says so", does, trace[2], trace[0])
		}
	}
	for trace, n := range alerts {
		if traces[trace] != n {
			k.Errorf("drift: %d events say that an alert about agent %s %s at trace %s, the points say %d", n, trace[0], does, trace[2], traces[trace])
		}
	}
}

// triples counts the rows of a statement with three columns of text.
func (k *checker) triples(statement string) map[[3]string]int {
	counts := map[[3]string]int{}
	k.query(statement, func(row []any) { counts[[3]string{row[0].(string), row[1].(string), row[2].(string)}]++ })
	return counts
}

// histories returns the traces of each (agent, card) that drift used, in order.
func (k *checker) histories(points map[schema.Digest]measured) map[series][]*store.StoredTrace {
	histories := map[series][]*store.StoredTrace{}
	unused := map[series][]*store.StoredTrace{}
	for _, row := range k.traces {
		c := series{row.AgentID, row.CardID}
		switch point, ok := points[row.Digest]; {
		case !ok:
			k.Errorf("drift: trace %s has no point", row.TraceID)
		case point.status == statusLate, point.status == statusConflict:
			unused[c] = append(unused[c], row)
		default:
			histories[c] = append(histories[c], row)
		}
	}
	for c, rows := range unused {
		for _, row := range rows {
			k.checkUnused(row, points[row.Digest].status, histories[c])
		}
	}
	for _, history := range histories {
		slices.SortFunc(history, func(a, b *store.StoredTrace) int {
			return cmp.Or(made(a).Compare(made(b)), compareSequence(a, b))
		})
	}
	return histories
}

// made returns when a trace was made. If an agent's clock is ahead of the broker's, it returns
// the time of arrival.
func made(row *store.StoredTrace) time.Time {
	if row.EventTime.After(row.Received) {
		return row.Received
	}
	return row.EventTime
}

// checkUnused: a late trace is older than one that was used; a conflict has the
// id of one that was used.
func (k *checker) checkUnused(row *store.StoredTrace, status string, used []*store.StoredTrace) {
	justified := slices.ContainsFunc(used, func(other *store.StoredTrace) bool {
		if status == statusLate {
			return made(other).After(made(row))
		}
		return other.TraceID == row.TraceID
	})
	if !justified {
		k.Errorf("drift: trace %s was not used, as %s, and no trace explains it", row.TraceID, status)
	}
	if status == statusLate {
		k.seen.Late++
	}
}

func (k *checker) facts(cardID string) drift.CardFacts {
	card, err := k.registry.Lookup(k.Context(), cardID)
	if errors.Is(err, cards.ErrUnknown) {
		return drift.CardFacts{CardID: cardID}
	}
	if err != nil {
		k.Fatal(err)
	}
	return drift.FactsOf(card.Card)
}

func (k *checker) points() map[schema.Digest]measured {
	points := map[schema.Digest]measured{}
	k.query("SELECT digest, status, similarity, streak FROM visible_drift_points", func(row []any) {
		var digest schema.Digest
		if err := digest.UnmarshalText([]byte(row[0].(string))); err != nil {
			k.Fatal(err)
		}
		points[digest] = measured{row[1].(string), row[2].(*float64), row[3].(uint32)}
	})
	return points
}

func (k *checker) comparePoint(row *store.StoredTrace, want drift.Point, got measured) {
	similar := got.similarity == nil
	if want.Status != drift.StatusBaseline {
		similar = got.similarity != nil && *got.similarity == want.Similarity
	}
	if got.status != string(want.Status) || int(got.streak) != want.Streak || !similar {
		k.Errorf("drift: trace %s is %s (streak %d), the replay says %s (streak %d)", row.TraceID, got.status, got.streak, want.Status, want.Streak)
	}
}

// compareAlerts: the stored events of alerts are those of the replay.
func (k *checker) compareAlerts(replayed map[string]*schema.DriftAlert) {
	stored, err := k.Store.DriftAlertEvents(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	raised, alerts := map[string]bool{}, map[schema.Digest]bool{}
	for i := range stored {
		alert := &stored[i].DriftAlert
		id := wire.DriftAlertID(alert)
		raised[id], alerts[alert.AlertID] = true, true
		want := replayed[id]
		if want == nil {
			k.Errorf("drift: alert %s about agent %s is not in the replay", id, alert.AgentID)
		} else if got, wanted := k.text(alert), k.text(want); got != wanted {
			k.Errorf("drift: stored is\n%s\nthe replay says\n%s", got, wanted)
		}
	}
	k.seen.Alerts = len(alerts)
	for id, alert := range replayed {
		if !raised[id] {
			k.Errorf("drift: alert %s about agent %s (traces %v) was not raised", id, alert.AgentID, alert.TraceIDs)
		}
	}
}

// compareAlertMessages: stream ALERTS contains the same events.
func (k *checker) compareAlertMessages(replayed map[string]*schema.DriftAlert) {
	published := map[string]bool{}
	for _, m := range k.readAll(stream.Alerts) {
		if m.Subject != subject.Alert(subject.AlertDrift, agentOf(m.Data)) {
			continue
		}
		var alert schema.DriftAlert
		if err := json.Unmarshal(m.Data, &alert); err != nil {
			k.Errorf("drift: a message on %s cannot be decoded as an alert: %v", m.Subject, err)
			continue
		}
		id := wire.DriftAlertID(&alert)
		published[id] = true
		if want := replayed[id]; want == nil {
			k.Errorf("drift: stream ALERTS contains alert %s, which is not in the replay", id)
		} else if got, wanted := k.text(&alert), k.text(want); got != wanted {
			k.Errorf("drift: published is\n%s\nthe replay says\n%s", got, wanted)
		}
	}
	for id := range replayed {
		if !published[id] {
			k.Errorf("drift: stream ALERTS does not contain alert %s", id)
		}
	}
}

func (k *checker) text(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		k.Fatal(err)
	}
	return string(text)
}
