package drift

import (
	"crypto/sha256"
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Content is the summary of the traces of a baseline, or of a baseline that is being gathered.
type Content struct {
	Features  similarity.Vector // the sum of the traces' features; in a Baseline their centroid
	Tally     Tally
	Reasoning Reasoning
}

// Tally sums the figures that the measures of AAP section 8.5 compare.
type Tally struct {
	Traces     int     `json:"t,omitempty"` // number of traces summed
	Escalated  int     `json:"e,omitempty"` // traces that required an escalation
	Values     int     `json:"v,omitempty"` // uses of values
	Undeclared int     `json:"u,omitempty"` // uses of values that the card does not declare
	Benefit    float64 `json:"b,omitempty"` // sum of principal_benefit
	Benefits   int     `json:"n,omitempty"` // traces with a principal_benefit
	Confidence float64 `json:"c,omitempty"` // sum; a trace without a confidence counts as 1
}

// Reasoning sums the sketches of texts. It does not keep the texts.
type Reasoning struct {
	Texts   int               // texts that are not empty
	Squares int64             // the sum of each sketch's product with itself
	Sum     similarity.Sketch // of all sketches
}

// Baseline is the summary that later traces are compared with. It never changes.
type Baseline struct {
	ID   schema.Digest // of agent, card, mode, engine version, the traces' digests and the features
	Mode Mode          // how it was formed
	Content
	expected *expectations // what later traces are compared with, if it was formed of sessions
}

// TraceRef refers to a trace.
type TraceRef struct {
	TraceID string        `json:"id"`
	Digest  schema.Digest `json:"d"`
}

// Formed is a baseline with the traces that formed it, in order, or with the sessions: a series
// that learns a baseline of sessions does not keep the ids of its traces.
type Formed struct {
	*Baseline
	Traces   []TraceRef
	Sessions []string
}

// gathering is a baseline that is not yet complete.
type gathering struct {
	Content
	traces []TraceRef
}

func (g *gathering) add(x *Sample) {
	g.Features = similarity.Add(g.Features, x.Features)
	g.Tally.add(tallyOf(x))
	g.Reasoning.add(x.Reasoning)
	g.traces = append(g.traces, TraceRef{x.TraceID, x.Digest})
}

// form computes the centroid. The gathering must not be used after it.
func (g *gathering) form(agentID, cardID string, mode Mode) Formed {
	b := &Baseline{Mode: mode, Content: g.Content}
	b.Features = similarity.Compact(similarity.Centroid(b.Features, g.Tally.Traces))
	formed := Formed{Baseline: b, Traces: g.traces}
	b.ID = formed.identity(agentID, cardID)
	return formed
}

// identity is the SHA-256 of everything that identifies a baseline. Strings and lists are
// preceded by their lengths.
func (f *Formed) identity(agentID, cardID string) schema.Digest {
	h := sha256.New()
	writeString(h, agentID)
	writeString(h, cardID)
	writeString(h, string(f.Mode))
	writeString(h, EngineVersion)
	writeUint(h, uint64(len(f.Traces)))
	for i := range f.Traces {
		h.Write(f.Traces[i].Digest[:])
	}
	writeUint(h, uint64(len(f.Features)))
	for _, feature := range f.Features {
		writeString(h, feature.Key)
		writeUint(h, math.Float64bits(feature.Weight))
	}
	if f.expected != nil {
		h.Write(f.expected.encoded())
	}
	return schema.Digest(h.Sum(nil))
}

// Belongs reports whether f is a baseline of this agent under this card and its id still fits
// its mode, traces and features.
func (f *Formed) Belongs(agentID, cardID string) bool {
	return f.ID == f.identity(agentID, cardID)
}

func tallyOf(x *Sample) Tally {
	t := Tally{Traces: 1, Values: x.Values, Undeclared: x.Undeclared, Confidence: x.Confidence}
	if x.Escalated {
		t.Escalated = 1
	}
	if x.HasBenefit {
		t.Benefit, t.Benefits = x.Benefit, 1
	}
	return t
}

func (t *Tally) add(o Tally) {
	t.Traces += o.Traces
	t.Escalated += o.Escalated
	t.Values += o.Values
	t.Undeclared += o.Undeclared
	t.Benefit += o.Benefit
	t.Benefits += o.Benefits
	t.Confidence += o.Confidence
}

func (r *Reasoning) add(text string) {
	if text == "" {
		return
	}
	sketch := similarity.SketchOf(text)
	r.Texts++
	r.Squares += sketch.Dot(&sketch)
	r.Sum.Add(&sketch)
}

// inner returns the mean similarity of two different texts of r, in 0..1; it is unknown if
// there are fewer than two.
func (r *Reasoning) inner() (mean float64, known bool) {
	if r.Texts < 2 {
		return 0, false
	}
	products := r.Sum.Dot(&r.Sum) - r.Squares // each pair counts twice
	return inUnit(float64(products) / float64(r.Texts*(r.Texts-1)) / similarity.Unit2), true
}

// to returns the mean similarity of a text to the texts of r, in 0..1; it is unknown if the
// text or r is empty.
func (r *Reasoning) to(text string) (mean float64, known bool) {
	if r.Texts == 0 || text == "" {
		return 0, false
	}
	sketch := similarity.SketchOf(text)
	return inUnit(float64(sketch.Dot(&r.Sum)) / float64(r.Texts) / similarity.Unit2), true
}

// inUnit clamps x to 0..1, since a sketch's error can exceed these bounds.
func inUnit(x float64) float64 { return min(1, max(0, x)) }
