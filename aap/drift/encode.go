package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// stateVersion is the version of the encoding of the published rule's state. Version 1, of engine
// plumbline-drift/1, can be read as well: see wireState1. Other states are binary: binary.go.
const stateVersion = 2

// wireState is the stored form of the published rule's state: short names, and vectors as two
// columns.
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
	Last     string                 `json:"last,omitempty"`
	ID       *schema.Digest         `json:"id,omitempty"`
	Opened   *time.Time             `json:"opened,omitempty"`
	Lapsed   *schema.DriftAlert     `json:"lapsed,omitempty"`
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
	Traces   []TraceRef `json:"traces"`
	Sessions []string   `json:"sessions,omitempty"`
	Expected []byte     `json:"expected,omitempty"` // what follows from the traces of a baseline of sessions
}

// marshalLetter returns the state of the published rule as compact JSON: about 1.5 KB for an
// ordinary agent, of which the sketch of its reasoning is half.
func (s *State) marshalLetter() ([]byte, error) {
	l := s.letter
	w := wireState{
		Version: stateVersion, Traces: l.Traces, Params: l.Params,
		Early: l.Early, Late: l.Late, Values: l.Values, Outside: l.Undeclared,
		Streak: l.Streak, Alerted: l.Alerted, Low: l.Low, Last: l.Last, Lapsed: s.lapsed,
	}
	if l.opened() {
		w.ID, w.Opened = &l.ID, &l.Opened
	}
	if l.Baseline != nil {
		w.Baseline = newWireBaseline(l.Baseline)
	}
	if l.gather != nil {
		w.Gather = &wireGathering{newWireContent(&l.gather.Content), append([]TraceRef{}, l.gather.traces...)}
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode drift state: %w", err)
	}
	return data, nil
}

// unmarshalLetter reads a state of the published rule, of which older engines wrote every state.
func unmarshalLetter(data []byte) (*State, error) {
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
		l, err := w.letter()
		if err != nil {
			return nil, err
		}
		return ofLetter(l, w.Lapsed), nil
	case 1:
		l, err := unmarshalVersion1(data)
		if err != nil {
			return nil, err
		}
		return ofLetter(l, nil), nil
	}
	return nil, fmt.Errorf("version %d, this engine reads versions 1 to %d", version.V, version8)
}

// ofLetter returns the state of a series under the published rule. Engines before version 3 applied it
// in mode pinned, too, and version 1 did not store the mode.
func ofLetter(l *letter, lapsed *schema.DriftAlert) *State {
	s := &State{Traces: l.Traces, Params: l.Params, letter: l, lapsed: lapsed}
	if !s.Params.Mode.letter() {
		s.Params.Mode = ModeFirst
	}
	return s
}

func (w *wireState) letter() (*letter, error) {
	s := &letter{
		Traces: w.Traces, Params: w.Params,
		Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted, Low: w.Low, Last: w.Last,
	}
	if w.ID != nil && w.Opened != nil {
		s.ID, s.Opened = *w.ID, *w.Opened
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
		s.gather = &gathering{content, w.Gather.Traces}
	}
	if s.Streak > 0 && s.Baseline == nil {
		return nil, errors.New("a streak without a baseline")
	}
	return s, nil
}

// MarshalJSON writes a baseline with its traces: {"id","m","keys","weights",…,"traces","expected"}.
func (f Formed) MarshalJSON() ([]byte, error) {
	w := wireFormed{wireBaseline: *newWireBaseline(f.Baseline), Traces: f.Traces, Sessions: f.Sessions}
	if f.expected != nil {
		w.Expected = f.expected.encoded()
	}
	return json.Marshal(w)
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
	if w.Expected != nil {
		if b.expected, err = decodeExpectations(w.Expected); err != nil {
			return fmt.Errorf("the expectations of baseline %s: %w", b.ID, err)
		}
		b.expected.ID, b.expected.Mode = b.ID, b.Mode
	}
	*f = Formed{b, w.Traces, w.Sessions}
	return nil
}

func newWireBaseline(b *Baseline) *wireBaseline {
	return &wireBaseline{b.ID, b.Mode, newWireContent(&b.Content)}
}

func (w *wireBaseline) baseline() (*Baseline, error) {
	content, err := w.content()
	return &Baseline{ID: w.ID, Mode: w.Mode, Content: content}, err
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

func unmarshalVersion1(data []byte) (*letter, error) {
	var w wireState1
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	if len(w.Keys) != len(w.Weights) {
		return nil, fmt.Errorf("%d keys but %d weights", len(w.Keys), len(w.Weights))
	}
	s := &letter{
		Traces: w.Traces, Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted,
	}
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
