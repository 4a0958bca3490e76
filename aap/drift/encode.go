package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// stateVersion is the version of the encoding. Version 1, of engine plumbline-drift/1, can be
// read as well: see wireState1.
const stateVersion = 2

// wireState is the stored form of a State: short names, and vectors as two columns.
type wireState struct {
	Version  int                    `json:"v"`
	Traces   int                    `json:"n"`
	Params   Params                 `json:"p"`
	Baseline *wireBaseline          `json:"base,omitempty"`
	Gather   *wireGathering         `json:"gather,omitempty"`
	Early    int                    `json:"early,omitempty"`
	Late     [escalationSample]bool `json:"late"`
	Values   int                    `json:"values,omitempty"`
	Outside  int                    `json:"undeclared,omitempty"`
	Streak   int                    `json:"streak,omitempty"`
	Alerted  bool                   `json:"alerted,omitempty"`
	Low      []Low                  `json:"low,omitempty"`
}

type wireContent struct {
	Keys    []string  `json:"keys,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
	Tally   Tally     `json:"tally"`
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
	Traces []TraceRef `json:"traces"`
}

type wireFormed struct {
	wireBaseline
	Traces []TraceRef `json:"traces"`
}

// Marshal returns s as compact JSON: about 1.5 KB for an ordinary agent, of which the sketch of
// its reasoning is half.
func (s *State) Marshal() ([]byte, error) {
	w := wireState{
		Version: stateVersion, Traces: s.Traces, Params: s.Params,
		Early: s.Early, Late: s.Late, Values: s.Values, Outside: s.Undeclared,
		Streak: s.Streak, Alerted: s.Alerted, Low: s.Low,
	}
	if s.Baseline != nil {
		w.Baseline = newWireBaseline(s.Baseline)
	}
	if s.gather != nil {
		w.Gather = &wireGathering{newWireContent(&s.gather.Content), append([]TraceRef{}, s.gather.traces...)}
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode drift state: %w", err)
	}
	return data, nil
}

// UnmarshalState reads the result of Marshal, of this version or an older one.
func UnmarshalState(data []byte) (*State, error) {
	var version struct {
		V int `json:"v"`
	}
	var s *State
	err := json.Unmarshal(data, &version)
	switch {
	case err != nil:
	case version.V == stateVersion:
		var w wireState
		if err = json.Unmarshal(data, &w); err == nil {
			s, err = w.state()
		}
	case version.V == 1:
		s, err = unmarshalVersion1(data)
	default:
		err = fmt.Errorf("version %d, this engine reads versions 1 and %d", version.V, stateVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("decode drift state: %w", err)
	}
	return s, nil
}

func (w *wireState) state() (*State, error) {
	s := &State{letter{
		Traces: w.Traces, Params: w.Params,
		Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted, Low: w.Low,
	}}
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
		s.gather = &gathering{content, w.Gather.Traces}
	}
	if s.Streak > 0 && s.Baseline == nil {
		return nil, errors.New("a streak without a baseline")
	}
	return s, nil
}

// MarshalJSON writes a baseline with its traces: {"id","m","keys","weights",…,"traces"}.
func (f Formed) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireFormed{*newWireBaseline(f.Baseline), f.Traces})
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
	*f = Formed{b, w.Traces}
	return nil
}

func newWireBaseline(b *Baseline) *wireBaseline {
	return &wireBaseline{b.ID, b.Mode, newWireContent(&b.Content)}
}

func (w *wireBaseline) baseline() (*Baseline, error) {
	content, err := w.content()
	return &Baseline{w.ID, w.Mode, content}, err
}

func newWireContent(c *Content) wireContent {
	w := wireContent{Tally: c.Tally, Texts: c.Reasoning.Texts, Squares: c.Reasoning.Squares}
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
	c := Content{Tally: w.Tally, Reasoning: Reasoning{Texts: w.Texts, Squares: w.Squares}}
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

// wireState1 is version 1 of the encoding. Its baseline has no id, no number of traces and no
// reasoning. The missing parts are replaced as follows. The baseline's id is the SHA-256 of the
// stored state. The escalations among the first three traces, which version 1 has, serve as the
// baseline's escalation rate. Reasoning is unknown until there is another baseline, and
// communication_drift is not found until then. New values count from the next trace on.
type wireState1 struct {
	Traces   int                    `json:"n"`
	Frozen   bool                   `json:"frozen"`
	Keys     []string               `json:"keys"`
	Weights  []float64              `json:"weights"`
	Early    int                    `json:"early"`
	Late     [escalationSample]bool `json:"late"`
	Values   int                    `json:"values"`
	Outside  int                    `json:"undeclared"`
	Tally    Tally                  `json:"tally"`
	Streak   int                    `json:"streak"`
	Alerted  bool                   `json:"alerted"`
	LowTrace []struct {
		TraceID    string        `json:"id"`
		Digest     schema.Digest `json:"d"`
		Similarity float64       `json:"s"`
		Confidence float64       `json:"c"`
		NewAction  bool          `json:"a"`
		Tally      Tally         `json:"t"`
	} `json:"low"`
}

func unmarshalVersion1(data []byte) (*State, error) {
	var w wireState1
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	if len(w.Keys) != len(w.Weights) {
		return nil, fmt.Errorf("%d keys but %d weights", len(w.Keys), len(w.Weights))
	}
	s := &State{letter{
		Traces: w.Traces, Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted,
	}}
	content := Content{Features: features(w.Keys, w.Weights), Tally: w.Tally}
	content.Tally.Traces, content.Tally.Escalated = min(w.Traces, escalationSample), w.Early
	if w.Frozen {
		s.Baseline = &Baseline{ID: sha256.Sum256(data), Mode: ModeFirst, Content: content}
	} else {
		content.Tally.Traces = w.Traces
		s.gather = &gathering{Content: content}
	}
	for i := range w.LowTrace {
		low := &w.LowTrace[i]
		low.Tally.Traces, low.Tally.Confidence = 1, low.Confidence
		s.Low = append(s.Low, Low{
			TraceRef: TraceRef{low.TraceID, low.Digest}, Similarity: low.Similarity, NewAction: low.NewAction, Tally: low.Tally,
		})
	}
	return s, nil
}
