package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/similarity"
)

// score is the answer of operation similarity.
type score struct {
	Similarity float64 `json:"similarity"`
	Rounded    float64 `json:"rounded"` // four decimals
}

func newScore(s float64) score { return score{Similarity: s, Rounded: similarity.Round4(s)} }

// features is the answer of operation features: of what the request carries.
type features struct {
	Trace vector `json:"trace,omitempty"`
	Card  vector `json:"card,omitempty"`
}

// vector is written as an object, its members in the order of the features.
type vector similarity.Vector

// MarshalJSON writes {"key": weight, …}.
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

// featuresOf answers operation features with either or both extractions.
func featuresOf(r request, trace, card func() (similarity.Vector, error)) (any, error) {
	if !r.has("trace") && !r.has("card") {
		return nil, errors.New("neither trace nor card is given")
	}
	var answer features
	for _, part := range []struct {
		name    string
		extract func() (similarity.Vector, error)
		into    *vector
	}{{"trace", trace, &answer.Trace}, {"card", card, &answer.Card}} {
		if !r.has(part.name) {
			continue
		}
		extracted, err := part.extract()
		if err != nil {
			return nil, err
		}
		*part.into = vector(extracted)
	}
	return answer, nil
}
