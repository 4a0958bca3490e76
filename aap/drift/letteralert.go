package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

const (
	alertType      = "drift_detected"
	recommendation = "Review recent decisions for alignment drift"
)

// alert describes the streak that x made sustained (AAP section 8.4).
func (s *letter) alert(x *Sample, p Params) *schema.DriftAlert {
	ids := make([]string, len(s.Low))
	for i := range s.Low {
		ids[i] = s.Low[i].TraceID
	}
	direction, indicators := s.judge(p.Profile)
	return &schema.DriftAlert{
		AlertID:            s.alertID(x, p),
		AlertType:          alertType,
		AgentID:            x.AgentID,
		CardID:             x.CardID,
		DetectionTimestamp: x.EventTime,
		Analysis: schema.DriftAnalysis{
			SimilarityScore:    similarity.Round4(s.Low[len(s.Low)-1].Similarity),
			SustainedTraces:    len(s.Low),
			Threshold:          p.SimilarityThreshold,
			DriftDirection:     direction,
			SpecificIndicators: indicators,
		},
		Recommendation: recommendation,
		TraceIDs:       ids,
		EngineVersion:  EngineVersion,
		Mode:           string(p.Mode),
		BaselineID:     s.Baseline.ID,
	}
}

// open makes the streak's alert, raised by a trace, the first event of a condition.
func (s *letter) open(a *schema.DriftAlert) {
	s.ID, s.Opened = a.AlertID, a.DetectionTimestamp
	s.tell(a, schema.AlertOpened)
}

// opened reports whether the streak has a condition. That of a finished list has none, nor has one
// whose alert an engine before version 3 raised.
func (s *letter) opened() bool { return s.Alerted && !s.Opened.IsZero() }

// tell adds the state of the condition to an alert of the streak.
func (s *letter) tell(a *schema.DriftAlert, state schema.AlertState) {
	a.AlertID, a.OpenedAt = s.ID, s.Opened
	a.State, a.Revision, a.Count, a.LastTraceID, a.Measures = state, 1, s.Streak, s.Last, []string{similarityName}
	a.Summary = fmt.Sprintf("The last %d decisions were less than %g similar to the baseline.", s.Streak, s.Params.SimilarityThreshold)
	if state == schema.AlertClosed {
		a.Revision = 2
		a.Summary = fmt.Sprintf("Decisions are similar to the baseline again, after %d that were not.", s.Streak)
	}
}

// alertID is the SHA-256 of everything that identifies the alert, so a replay gives the same
// id. Strings and the list are preceded by their lengths.
func (s *letter) alertID(x *Sample, p Params) schema.Digest {
	h := sha256.New()
	writeString(h, x.AgentID)
	writeString(h, x.CardID)
	writeUint(h, uint64(len(s.Low)))
	for i := range s.Low {
		h.Write(s.Low[i].Digest[:])
	}
	writeString(h, EngineVersion)
	writeUint(h, math.Float64bits(p.SimilarityThreshold))
	writeUint(h, uint64(p.Sustained))
	writeUint(h, uint64(p.Window))
	writeString(h, string(p.Mode))
	writeString(h, string(p.Profile))
	return schema.Digest(h.Sum(nil))
}

func writeString(h hash.Hash, s string) {
	writeUint(h, uint64(len(s)))
	h.Write([]byte(s))
}

func writeUint(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

// judge returns the streak's direction and its indicators, which are never nil.
func (s *letter) judge(p Profile) (schema.Direction, []schema.Indicator) {
	if p == ProfileReference {
		return s.publishedDirection(), s.publishedIndicators()
	}
	direction, indicators := schema.UnknownDirection, []schema.Indicator{}
	for _, m := range s.Measures() {
		if m.Holds && direction == schema.UnknownDirection { // the first that holds decides
			direction = m.Category
		}
		if m.Notable {
			indicators = append(indicators, m.Indicator)
		}
	}
	return direction, append(indicators, s.trend()...)
}

// trend compares the first and last similarity of the streak.
func (s *letter) trend() []schema.Indicator {
	if len(s.Low) < trendTraces {
		return nil
	}
	first, last := s.Low[0].Similarity, s.Low[len(s.Low)-1].Similarity
	series := "stable"
	if last < first {
		series = "decreasing"
	}
	return []schema.Indicator{{
		Indicator:   SimilarityTrend,
		Baseline:    similarity.Round4(first),
		Current:     similarity.Round4(last),
		Description: fmt.Sprintf("Similarity %s over %d traces", series, len(s.Low)),
	}}
}

// escalationSample is the number of first and last traces that the published rules compute
// escalation rates from. confidenceSample is the number of traces for a mean confidence.
const (
	escalationSample = 3
	confidenceSample = 3
)

// publishedDirection infers a category as the published SDK does: the first that holds.
func (s *letter) publishedDirection() schema.Direction {
	early, late, ok := s.escalationRates()
	switch {
	case ok && early > earlyEscalation && late < early/2:
		return schema.AutonomyExpansion
	case s.Values > 0 && float64(s.Undeclared)/float64(s.Values) > driftedShare:
		return schema.ValueDrift
	case s.Low[len(s.Low)-1].DeclaresBenefit && s.meanConfidence() < lowConfidence:
		return schema.PrincipalMisalignment
	}
	return schema.UnknownDirection
}

// publishedIndicators returns the SDK's two indicators under the names of AAP section 8.4.
func (s *letter) publishedIndicators() []schema.Indicator {
	indicators := []schema.Indicator{}
	if early, late, ok := s.escalationRates(); ok && math.Abs(early-late) > notableChange {
		name := EscalationRateDecrease
		if late > early {
			name = EscalationRateIncrease
		}
		indicators = append(indicators, percentages(name, "Escalation rate changed from %.0f%% to %.0f%%", early, late))
	}
	return append(indicators, s.trend()...)
}

// escalationRates returns the shares of traces that required an escalation among the first
// three and the last three. ok is false for fewer than six traces.
func (s *letter) escalationRates() (early, late float64, ok bool) {
	if s.Traces < 2*escalationSample {
		return 0, 0, false
	}
	escalated := 0
	for _, required := range s.Late {
		if required {
			escalated++
		}
	}
	return float64(s.Early) / escalationSample, float64(escalated) / escalationSample, true
}

// meanConfidence returns the mean over the last three traces of the streak's alert.
func (s *letter) meanConfidence() float64 {
	last := s.Low[max(0, len(s.Low)-confidenceSample):]
	var sum float64
	for i := range last {
		sum += last[i].Tally.Confidence
	}
	return sum / float64(len(last))
}
