package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/reference"
	"github.com/plumbline/plumbline/aap/similarity"
)

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
	for _, part := range []struct {
		name    string
		extract extraction
		into    *json.Marshaler
	}{{"trace", trace, &answer.Trace}, {"card", card, &answer.Card}} {
		if !r.has(part.name) {
			continue
		}
		extracted, err := part.extract(r)
		if err != nil {
			return nil, err
		}
		*part.into = extracted
	}
	return answer, nil
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
