package drift

import (
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Status classifies a trace in the series of an agent's behaviour.
type Status string

// The five statuses of a point.
const (
	StatusBaseline  Status = "baseline"  // the baseline is still learned: not compared
	StatusNormal    Status = "normal"    // similar enough, and no condition is open
	StatusLow       Status = "low"       // below the threshold, and no condition is open yet
	StatusDrift     Status = "drift"     // a condition is open
	StatusRecovered Status = "recovered" // the trace that closes a condition
)

// Point is the state of one agent's series at one trace.
type Point struct {
	TraceID    string
	Digest     schema.Digest
	EventTime  time.Time
	Similarity float64 // to the baseline, not rounded; 0 where Status is baseline
	Status     Status
	Streak     int           // consecutive low traces up to this one
	Baseline   schema.Digest // id of the baseline compared with; zero where Status is baseline
}

// Outcome is the result of one step.
type Outcome struct {
	Point
	Alert  *schema.DriftAlert // set if the trace opens, updates or closes a condition
	Formed *Formed            // the baseline that the trace completes, effective from the next trace on
}

// State is the series of one agent under one card so far. The zero State has seen no traces. It
// is not safe for concurrent use.
//
// Modes first and rolling apply the published rule. Modes sessions and pinned compare with a
// baseline of sessions: by the similarity of section 8.2, and by the measures of section 8.5, each
// against the rate that the baseline leads to expect. Whatever they find is one condition, which
// opens, is updated and closes. Under a mode of the other pair the series learns again.
type State struct {
	Traces int    // traces applied so far, including those of the baseline
	Params Params // of the last step

	letter   *letter       // of modes first and rolling
	learning *learning     // nil once there is a baseline of sessions
	expected *expectations // nil before it
	detector detector
	open     *condition         // nil where there is none
	lapsed   *schema.DriftAlert // closes a condition whose baseline was replaced, at the next step

	Streak int      // consecutive traces of low similarity
	within []uint64 // hashes of the streak's first sessions, as many as raise an alarm
	raised bool     // the streak has raised its alarm
}

// Step applies the next trace, in the order of the series.
func (s *State) Step(x Sample, p Params) Outcome {
	if s.Params.Mode.letter() != p.Mode.letter() && s.Traces > 0 { // the other family of modes
		s.lapse()
		*s = State{Traces: s.Traces, lapsed: s.lapsed}
	}
	s.Params = p
	s.Traces++
	if p.Mode.letter() {
		return s.applyLetter(x, p)
	}
	if s.expected == nil {
		return s.learn(&x, p)
	}
	return s.compare(&x, p)
}

// applyLetter applies the published rule. Each of its streaks that is sustained is a condition.
func (s *State) applyLetter(x Sample, p Params) Outcome {
	if s.letter == nil {
		s.letter = new(letter)
	}
	out := s.letter.step(x, p)
	switch l := s.letter; {
	case out.Alert != nil:
		l.open(out.Alert)
	case l.ended != nil:
		out.Alert, l.ended = l.ended, nil
		out.Alert.ClosedAt = x.EventTime
	case s.lapsed != nil:
		out.Alert = s.closeLapsed(&x)
	}
	return out
}

// learn adds a trace to the baseline that is learned.
func (s *State) learn(x *Sample, p Params) Outcome {
	out := Outcome{Point: Point{TraceID: x.TraceID, Digest: x.Digest, EventTime: x.EventTime, Status: StatusBaseline}}
	if s.lapsed != nil {
		out.Alert = s.closeLapsed(x)
	}
	if s.learning == nil {
		s.learning = &learning{first: (p.Sessions + 1) / 2}
	}
	s.learning.add(x)
	if s.learning.ready(p) {
		formed := s.learning.form(x.AgentID, x.CardID, ModeSessions, nil)
		s.begin(formed.expected)
		out.Formed = &formed
	}
	return out
}

// begin makes a baseline the current one.
func (s *State) begin(e *expectations) {
	s.expected, s.learning, s.letter = e, nil, nil
	s.detector = detector{}
	s.detector.reset(int(fixedTests) + len(e.values))
	s.endStreak()
}

// End completes a session of the series, as its end mark does. If it was the last one that the
// baseline lacks, the next trace completes the baseline. It does nothing if the series has no
// such session, or has a baseline.
func (s *State) End(session string) {
	if s.learning != nil {
		s.learning.end(session)
	}
}

// Pin sets the baseline. It does nothing if this baseline is already effective. Another
// baseline ends the streak and the condition, which were relative to the old one.
func (s *State) Pin(b *Baseline) {
	if s.expected != nil && s.expected.ID == b.ID || b.expected == nil {
		return
	}
	s.lapse()
	s.begin(b.expected)
	s.Params.Mode = ModePinned // also after a state of the published rule
}

// lapse prepares the event that closes the open condition, because its baseline is replaced. The
// next step completes it.
func (s *State) lapse() {
	switch {
	case s.letter != nil && s.letter.opened():
		s.lapsed = s.letter.alert(&Sample{}, s.Params)
		s.letter.tell(s.lapsed, schema.AlertClosed)
	case s.open != nil:
		s.open.revision++
		s.lapsed = s.event(&Sample{}, schema.AlertClosed, 0, s.Params)
		s.open = nil
	default:
		return
	}
	s.lapsed.Summary = "The baseline was replaced, so the comparison with it ended."
}

func (s *State) closeLapsed(x *Sample) *schema.DriftAlert {
	a := s.lapsed
	s.lapsed = nil
	a.AgentID, a.CardID, a.ClosedAt, a.DetectionTimestamp = x.AgentID, x.CardID, x.EventTime, x.EventTime
	return a
}

// compare compares a trace with the baseline.
func (s *State) compare(x *Sample, p Params) Outcome {
	out := Outcome{Point: Point{TraceID: x.TraceID, Digest: x.Digest, EventTime: x.EventTime, Baseline: s.expected.ID}}
	out.Similarity = s.expected.centroid.similarity(x.Features)
	var room [measures]observation
	observed := s.expected.observe(x, room[:0])
	crossed, near := s.detector.step(x, observed, s.expected.application(x), out.Similarity, s.expected.lowRate(p.SimilarityThreshold), p, s.open)
	if s.follow(x, out.Similarity, p) {
		crossed |= 1 << streak
	}
	out.Streak = s.Streak
	out.Status, out.Alert = s.judge(x, out.Similarity, crossed, near, p)
	return out
}

// judge opens, updates or closes the condition. It returns the status of the trace and the event
// of the condition, if there is one.
func (s *State) judge(x *Sample, score float64, crossed, near testSet, p Params) (Status, *schema.DriftAlert) {
	c := s.open
	switch {
	case s.lapsed != nil:
		a := s.closeLapsed(x)
		a.Analysis.SimilarityScore = similarity.Round4(score)
		return StatusRecovered, a
	case c == nil && crossed != 0:
		s.open = s.condition(x, crossed, near, p)
		return StatusDrift, s.event(x, schema.AlertOpened, score, p)
	case c == nil && s.Streak > 0:
		return StatusLow, nil
	case c == nil:
		return StatusNormal, nil
	}
	if joined := c.join(crossed|s.detector.departing(near), &s.detector); joined || c.count >= c.next {
		c.revision++
		c.tellNext()
		return StatusDrift, s.event(x, schema.AlertUpdated, score, p)
	}
	if !c.recovered() {
		return StatusDrift, nil
	}
	c.revision++
	a := s.event(x, schema.AlertClosed, score, p)
	s.open = nil
	s.detector.reset(len(s.detector.tests))
	return StatusRecovered, a
}

// follow adds a trace to the streak or ends it. It reports whether the trace makes the streak an
// alarm: it is long enough, and enough sessions have a part in it.
func (s *State) follow(x *Sample, score float64, p Params) bool {
	if score >= p.SimilarityThreshold {
		s.endStreak()
		return false
	}
	s.Streak++
	if hash := hashOf(x.Session); len(s.within) < p.StreakSessions && !slices.Contains(s.within, hash) {
		s.within = append(s.within, hash)
	}
	if s.raised || s.Streak < s.expected.sustained(p) || len(s.within) < p.StreakSessions {
		return false
	}
	s.raised = true
	return true
}

func (s *State) endStreak() {
	s.Streak, s.raised, s.within = 0, false, s.within[:0]
}
