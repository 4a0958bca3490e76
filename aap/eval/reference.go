package eval

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/reference"
)

// referenceOperations give the results of the public SDK.
var referenceOperations = map[string]operation{
	"verify": onTrees("trace card", func(in []any, now time.Time) (any, error) {
		return reference.Verify(in[0], in[1], now)
	}),
	"condition": onTrees("condition trace", func(in []any, _ time.Time) (any, error) {
		return reference.Condition(in[0], in[1])
	}),
	"drift": onTrees("card traces similarity_threshold sustained_threshold", func(in []any, now time.Time) (any, error) {
		return reference.Drift(in[0], in[1], reference.DriftParams{SimilarityThreshold: in[2], SustainedThreshold: in[3]}, now)
	}),
	"coherence": onTrees("my_card their_card task_values", func(in []any, _ time.Time) (any, error) {
		return reference.CheckCoherence(in[0], in[1], in[2])
	}),
	"fleet": onTrees("cards task_values", func(in []any, _ time.Time) (any, error) {
		return reference.CheckFleet(in[0], in[1])
	}),
	"features": func(r request) (any, error) {
		return featuresOf(r, ofTree("trace", reference.TraceFeatures), ofTree("card", reference.CardFeatures))
	},
	"similarity": onTrees("trace card", func(in []any, _ time.Time) (any, error) {
		score, err := reference.Similarity(in[0], in[1])
		return newScore(score), err
	}),
	"trace_similarities": onTrees("traces sustained_threshold", func(in []any, _ time.Time) (any, error) {
		return reference.TraceSimilarities(in[0], reference.DriftParams{SustainedThreshold: in[1]})
	}),
}

// onTrees is an operation on the named members as generic trees.
func onTrees(names string, operate func(in []any, now time.Time) (any, error)) operation {
	return func(r request) (any, error) {
		in, err := r.trees(strings.Fields(names))
		if err != nil {
			return nil, err
		}
		return operate(in, r.now)
	}
}

func ofTree(name string, extract func(any) (*reference.Vector, error)) extraction {
	return func(r request) (json.Marshaler, error) {
		in, err := r.trees([]string{name})
		if err != nil {
			return nil, err
		}
		return extract(in[0])
	}
}
