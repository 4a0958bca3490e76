package rows

import (
	"context"
	"time"
)

// The queries of what the records of an agent say in their bytes, which are read of few traces: they are most of the
// table.
var (
	querySample         = query("agent_sample")
	queryBaselineSample = query("agent_baseline_sample")
	queryTexts          = query("agent_texts")
)

// The greatest numbers of traces of a sample.
const (
	SampleOfStep     = 10
	SampleOfBaseline = 200
)

// Sampled are traces of one hour.
type Sampled struct {
	Hour    uint32   `ch:"event_hour"`
	Digests []string `ch:"digests"` // hexadecimal
}

// Sample returns traces of each step of a span: SampleOfStep at most, of the step's latest hour with traces.
func (r *Reader) Sample(ctx context.Context, s Span) ([]Sampled, error) {
	return read[Sampled](ctx, r, "a sample of an agent's traces", querySample, s.args()...)
}

// BaselineSample returns the first traces of a baseline that are still stored, SampleOfBaseline at most.
func (r *Reader) BaselineSample(ctx context.Context, agent, card string, b *Baseline) ([]Sampled, error) {
	s := Span{AgentID: agent, CardID: card, From: time.Unix(0, 0), To: b.FormedAt.Add(time.Hour)}
	return read[Sampled](ctx, r, "a sample of a baseline", queryBaselineSample, append(s.args(), argument("digests", append([]string{}, b.Digests...)), argument("limit", SampleOfBaseline))...)
}

// Text is what a record says in its bytes.
type Text struct {
	Step       int64  `ch:"step"`
	Session    string `ch:"session_id"`
	Acts       bool   `ch:"acts"`       // the decision acts (execute, escalate); else it answers
	Characters uint64 `ch:"characters"` // of the whole selection_reasoning
	Beginning  string `ch:"beginning"`  // of it, at least as much as a sketch reads
	Benefit    string `ch:"benefit"`    // principal_benefit of the selected alternative, as JSON; empty: it has none
}

// Texts returns what the sampled traces say, in the order of their times.
func (r *Reader) Texts(ctx context.Context, s Span, sampled []Sampled) ([]Text, error) {
	hours, digests := []uint32{}, []string{}
	for _, one := range sampled {
		hours, digests = append(hours, one.Hour), append(digests, one.Digests...)
	}
	if len(digests) == 0 {
		return nil, nil
	}
	return read[Text](ctx, r, "the texts of an agent", queryTexts, append(s.args(), argument("hours", hours), argument("digests", digests))...)
}
