package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/reference"
	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// matrix is the result of operation ssm: the self-similarity matrix of the traces in the given
// order, and against_card if the request has a card.
type matrix struct {
	Size     int         `json:"size"`
	TraceIDs []string    `json:"trace_ids"`
	Matrix   [][]float64 `json:"matrix"`
	similarity.Summary
	AgainstCard *cardSeries `json:"against_card,omitempty"`
}

// cardSeries holds the similarity of every trace to the card.
type cardSeries struct {
	Similarities []float64 `json:"similarities"`
	similarity.Summary
}

func specMatrix(r request) (any, error) {
	traces, err := r.traceList()
	if err != nil {
		return nil, err
	}
	m, err := similarity.NewMatrix(traces)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	answer := matrix{Size: len(traces), TraceIDs: m.TraceIDs, Matrix: make([][]float64, len(traces)), Summary: m.Summary()}
	for i := range answer.Matrix {
		answer.Matrix[i] = m.Row(i)
	}
	if r.has("card") {
		card, err := r.card()
		if err != nil {
			return nil, err
		}
		scores := similarity.AgainstCard(traces, similarity.NewCard(card))
		answer.AgainstCard = &cardSeries{scores, similarity.Summarize(scores)}
	}
	return answer, nil
}

// traceList returns the traces of a request.
func (r request) traceList() ([]*schema.Trace, error) {
	var raws []json.RawMessage
	if err := r.decode("traces", &raws); err != nil {
		return nil, err
	}
	traces := make([]*schema.Trace, len(raws))
	for i, raw := range raws {
		trace, err := schema.Admit("", raw)
		if err != nil {
			return nil, fmt.Errorf("traces[%d]: %w", i, err)
		}
		traces[i] = trace
	}
	return traces, nil
}

func specTextSimilarity(r request) (any, error) {
	a, errA := r.text("a")
	b, errB := r.text("b")
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	return similarity.CompareTexts(a, b)
}

// text returns a text member, or the reasoning of a trace member.
func (r request) text(name string) (similarity.Text, error) {
	var text string
	if err := r.decode(name, &text); err == nil {
		return similarity.Text{Text: text}, nil
	}
	raw, ok := r.members[name]
	if !ok {
		return similarity.Text{}, fmt.Errorf("%s: missing: want a text or a trace", name)
	}
	trace, err := schema.Admit("", raw)
	if err != nil {
		return similarity.Text{}, fmt.Errorf("%s: neither a text nor a trace: %w", name, err)
	}
	return similarity.TextOf(trace), nil
}

// score is the result of operation similarity.
type score struct {
	Similarity reference.Number `json:"similarity"`
	Rounded    reference.Number `json:"rounded"` // four decimals
}

func newScore(s float64) score {
	return score{Similarity: reference.Number(s), Rounded: reference.Number(similarity.Round4(s))}
}

// features is the result of operation features, for the trace and the card in the request.
type features struct {
	Trace json.Marshaler `json:"trace,omitempty"`
	Card  json.Marshaler `json:"card,omitempty"`
}

// extraction computes one vector of a request.
type extraction func(request) (json.Marshaler, error)

// featuresOf computes the result of operation features with one extraction or both.
func featuresOf(r request, trace, card extraction) (any, error) {
	if !r.has("trace") && !r.has("card") {
		return nil, errors.New("neither trace nor card is given")
	}
	var answer features
	var err error
	if r.has("trace") {
		if answer.Trace, err = trace(r); err != nil {
			return nil, err
		}
	}
	if r.has("card") {
		answer.Card, err = card(r)
	}
	return answer, err
}

// vector is encoded as an object, with members in the order of the features.
type vector similarity.Vector

// MarshalJSON returns {"key": weight, …}.
func (v vector) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, feature := range v {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := encode(feature.Key)
		if err != nil {
			return nil, fmt.Errorf("feature key: %w", err)
		}
		weight, err := json.Marshal(feature.Weight)
		if err != nil {
			return nil, fmt.Errorf("feature %s: %w", feature.Key, err)
		}
		b = append(append(append(b, key...), ':'), weight...)
	}
	return append(b, '}'), nil
}
