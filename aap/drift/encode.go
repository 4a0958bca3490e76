package drift

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// stateVersion is the version of the encoding. Version 1, of engine plumbline-drift/1, can be
// read as well: see encode_v1.go.
const stateVersion = 2

// wireState is the stored form of a State: short names, and vectors as two columns.
type wireState struct {
	Version  int                    `json:"v"`
	Traces   int                    `json:"n"`
	Params   wireParams             `json:"p"`
	Baseline *wireBaseline          `json:"base,omitempty"`
	Gather   *wireGathering         `json:"gather,omitempty"`
	Early    int                    `json:"early,omitempty"`
	Late     [escalationSample]bool `json:"late"`
	Values   int                    `json:"values,omitempty"`
	Outside  int                    `json:"undeclared,omitempty"`
	Streak   int                    `json:"streak,omitempty"`
	Alerted  bool                   `json:"alerted,omitempty"`
	Low      []wireLow              `json:"low,omitempty"`
}

type wireParams struct {
	SimilarityThreshold float64 `json:"t"`
	Sustained           int     `json:"s"`
	Window              int     `json:"w"`
	Mode                Mode    `json:"m"`
	Profile             Profile `json:"r"`
}

type wireContent struct {
	Keys    []string  `json:"keys,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
	Tally   wireTally `json:"tally"`
	Texts   int       `json:"texts,omitempty"`
	Squares int64     `json:"squares,omitempty"`
	Sketch  []byte    `json:"sketch,omitempty"` // little-endian; absent without texts
}

type wireBaseline struct {
	ID   schema.Digest `json:"id"`
	Mode Mode          `json:"m"`
	wireContent
}

type wireGathering struct {
	wireContent
	Traces []wireRef `json:"traces"`
}

type wireRef struct {
	TraceID string        `json:"id"`
	Digest  schema.Digest `json:"d"`
}

type wireTally struct {
	Traces     int     `json:"t,omitempty"`
	Escalated  int     `json:"e,omitempty"`
	Values     int     `json:"v,omitempty"`
	Undeclared int     `json:"u,omitempty"`
	Benefit    float64 `json:"b,omitempty"`
	Benefits   int     `json:"n,omitempty"`
	Confidence float64 `json:"c,omitempty"`
}

type wireLow struct {
	wireRef
	Similarity      float64   `json:"s"`
	NewAction       bool      `json:"a,omitempty"`
	DistinctValues  int       `json:"v,omitempty"`
	NewValues       int       `json:"nv,omitempty"`
	Reasoning       float64   `json:"r,omitempty"`
	HasReasoning    bool      `json:"hr,omitempty"`
	DeclaresBenefit bool      `json:"db,omitempty"`
	Tally           wireTally `json:"t"`
}

// Marshal returns s as compact JSON: about 1.5 KB for an ordinary agent, of which the sketch of
// its reasoning is half.
func (s *State) Marshal() ([]byte, error) {
	w := wireState{
		Version: stateVersion, Traces: s.Traces, Params: wireParams(s.Params),
		Early: s.Early, Late: s.Late, Values: s.Values, Outside: s.Undeclared,
		Streak: s.Streak, Alerted: s.Alerted,
	}
	if s.Baseline != nil {
		w.Baseline = newWireBaseline(s.Baseline)
	}
	if s.gather != nil {
		w.Gather = &wireGathering{newWireContent(&s.gather.Content), newWireRefs(s.gather.traces)}
	}
	for i := range s.Low {
		low := &s.Low[i]
		w.Low = append(w.Low, wireLow{
			wireRef(low.TraceRef), low.Similarity, low.NewAction, low.DistinctValues, low.NewValues,
			low.Reasoning, low.HasReasoning, low.DeclaresBenefit, wireTally(low.Tally),
		})
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode drift state: %w", err)
	}
	return data, nil
}

// UnmarshalState reads the result of Marshal, of this version or an older one.
func UnmarshalState(data []byte) (*State, error) {
	s, err := unmarshalState(data)
	if err != nil {
		return nil, fmt.Errorf("decode drift state: %w", err)
	}
	return s, nil
}

func unmarshalState(data []byte) (*State, error) {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	switch version.V {
	case stateVersion:
		var w wireState
		if err := json.Unmarshal(data, &w); err != nil {
			return nil, err
		}
		return w.state()
	case 1:
		return unmarshalVersion1(data)
	}
	return nil, fmt.Errorf("version %d, this engine reads versions 1 and %d", version.V, stateVersion)
}

func (w *wireState) state() (*State, error) {
	s := &State{
		Traces: w.Traces, Params: Params(w.Params),
		Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted,
	}
	if w.Baseline != nil {
		b, err := w.Baseline.baseline()
		if err != nil {
			return nil, err
		}
		s.Baseline = b
	}
	if w.Gather != nil {
		content, err := w.Gather.content()
		if err != nil {
			return nil, err
		}
		s.gather = &gathering{content, refs(w.Gather.Traces)}
	}
	for i := range w.Low {
		low := &w.Low[i]
		s.Low = append(s.Low, Low{
			TraceRef(low.wireRef), low.Similarity, low.NewAction, low.DistinctValues, low.NewValues,
			low.Reasoning, low.HasReasoning, low.DeclaresBenefit, Tally(low.Tally),
		})
	}
	if s.Streak > 0 && s.Baseline == nil {
		return nil, errors.New("a streak without a baseline")
	}
	return s, nil
}

// MarshalJSON writes a baseline with its traces: {"id","m","keys","weights",…,"traces"}.
func (f Formed) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireFormed{*newWireBaseline(f.Baseline), newWireRefs(f.Traces)})
}

// UnmarshalJSON reads the result of MarshalJSON. It does not check the id; Belongs does.
func (f *Formed) UnmarshalJSON(data []byte) error {
	var w wireFormed
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	b, err := w.baseline()
	if err != nil {
		return err
	}
	*f = Formed{b, refs(w.Traces)}
	return nil
}

type wireFormed struct {
	wireBaseline
	Traces []wireRef `json:"traces"`
}

func newWireBaseline(b *Baseline) *wireBaseline {
	return &wireBaseline{b.ID, b.Mode, newWireContent(&b.Content)}
}

func (w *wireBaseline) baseline() (*Baseline, error) {
	content, err := w.content()
	return &Baseline{w.ID, w.Mode, content}, err
}

func newWireContent(c *Content) wireContent {
	w := wireContent{Tally: wireTally(c.Tally), Texts: c.Reasoning.Texts, Squares: c.Reasoning.Squares}
	for _, f := range c.Features {
		w.Keys, w.Weights = append(w.Keys, f.Key), append(w.Weights, f.Weight)
	}
	if c.Reasoning.Texts > 0 {
		w.Sketch = make([]byte, 0, 2*len(c.Reasoning.Sum))
		for _, n := range c.Reasoning.Sum {
			w.Sketch = binary.LittleEndian.AppendUint16(w.Sketch, uint16(n))
		}
	}
	return w
}

func (w *wireContent) content() (Content, error) {
	c := Content{Tally: Tally(w.Tally), Reasoning: Reasoning{Texts: w.Texts, Squares: w.Squares}}
	if len(w.Keys) != len(w.Weights) {
		return c, fmt.Errorf("%d keys but %d weights", len(w.Keys), len(w.Weights))
	}
	c.Features = features(w.Keys, w.Weights)
	if w.Texts == 0 {
		return c, nil
	}
	if len(w.Sketch) != 2*len(c.Reasoning.Sum) {
		return c, fmt.Errorf("a sketch of %d bytes, want %d", len(w.Sketch), 2*len(c.Reasoning.Sum))
	}
	for i := range c.Reasoning.Sum {
		c.Reasoning.Sum[i] = int16(binary.LittleEndian.Uint16(w.Sketch[2*i:]))
	}
	return c, nil
}

func features(keys []string, weights []float64) similarity.Vector {
	var v similarity.Vector
	for i, key := range keys {
		v = append(v, similarity.Feature{Key: key, Weight: weights[i]})
	}
	return v
}

func newWireRefs(traces []TraceRef) []wireRef {
	w := make([]wireRef, len(traces))
	for i, t := range traces {
		w[i] = wireRef(t)
	}
	return w
}

func refs(w []wireRef) []TraceRef {
	traces := make([]TraceRef, len(w))
	for i := range w {
		traces[i] = TraceRef(w[i])
	}
	return traces
}
