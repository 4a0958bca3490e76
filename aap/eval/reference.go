package eval

import (
	"encoding/json"

	"github.com/plumbline/plumbline/aap/reference"
)

// referenceOperations give the results of the public SDK.
var referenceOperations = map[string]operation{
	"verify":             referenceVerify,
	"condition":          referenceCondition,
	"drift":              referenceDrift,
	"coherence":          referenceCoherence,
	"fleet":              referenceFleet,
	"features":           referenceFeatures,
	"similarity":         referenceSimilarity,
	"trace_similarities": referenceTraceSimilarities,
}

func referenceVerify(r request) (any, error) {
	in, err := r.looseAll("trace", "card")
	if err != nil {
		return nil, err
	}
	return reference.Verify(in[0], in[1], r.now)
}

func referenceCondition(r request) (any, error) {
	in, err := r.looseAll("condition", "trace")
	if err != nil {
		return nil, err
	}
	return reference.Condition(in[0], in[1])
}

func referenceDrift(r request) (any, error) {
	in, err := r.looseAll("card", "traces", "similarity_threshold", "sustained_threshold")
	if err != nil {
		return nil, err
	}
	return reference.Drift(in[0], in[1], reference.DriftParams{SimilarityThreshold: in[2], SustainedThreshold: in[3]}, r.now)
}

func referenceCoherence(r request) (any, error) {
	in, err := r.looseAll("my_card", "their_card", "task_values")
	if err != nil {
		return nil, err
	}
	return reference.CheckCoherence(in[0], in[1], in[2])
}

func referenceFleet(r request) (any, error) {
	in, err := r.looseAll("cards", "task_values")
	if err != nil {
		return nil, err
	}
	return reference.CheckFleet(in[0], in[1])
}

func referenceFeatures(r request) (any, error) {
	return featuresOf(r, ofLoose("trace", reference.TraceFeatures), ofLoose("card", reference.CardFeatures))
}

func ofLoose(name string, extract func(any) (*reference.Vector, error)) extraction {
	return func(r request) (json.Marshaler, error) {
		tree, err := r.loose(name)
		if err != nil {
			return nil, err
		}
		return extract(tree)
	}
}

func referenceSimilarity(r request) (any, error) {
	in, err := r.looseAll("trace", "card")
	if err != nil {
		return nil, err
	}
	score, err := reference.Similarity(in[0], in[1])
	return newScore(score), err
}

func referenceTraceSimilarities(r request) (any, error) {
	in, err := r.looseAll("traces", "sustained_threshold")
	if err != nil {
		return nil, err
	}
	return reference.TraceSimilarities(in[0], reference.DriftParams{SustainedThreshold: in[1]})
}
