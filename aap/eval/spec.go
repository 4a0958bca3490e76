package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// specOperations give the results of Plumbline.
var specOperations = map[string]operation{
	"verify":             specVerify,
	"condition":          specCondition,
	"drift":              specDrift,
	"coherence":          specCoherence,
	"fleet":              specFleet,
	"features":           specFeatures,
	"similarity":         specSimilarity,
	"trace_similarities": specTraceSimilarities,
	"ssm":                specMatrix,
	"text_similarity":    specTextSimilarity,
}

func (r request) trace() (*schema.Trace, error) {
	return record(r, "trace", func(raw []byte) (*schema.Trace, error) { return schema.Admit("", raw) })
}

func (r request) card() (*schema.Card, error) { return record(r, "card", schema.DecodeCard) }

// record decodes a required member.
func record[T any](r request, name string, decode func(raw []byte) (*T, error)) (*T, error) {
	raw, ok := r.members[name]
	if !ok {
		return nil, fmt.Errorf("%s: missing", name)
	}
	decoded, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return decoded, nil
}

func (r request) traceAndCard() (*schema.Trace, *schema.Card, error) {
	trace, traceErr := r.trace()
	card, cardErr := r.card()
	return trace, card, errors.Join(traceErr, cardErr)
}

func specVerify(r request) (any, error) {
	trace, card, err := r.traceAndCard()
	if err != nil {
		return nil, err
	}
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		return nil, err
	}
	var verdict schema.Verdict
	judge.Verify(trace, aap.Compile(card), aap.Facts{GivenApart: true}, r.now, &verdict)
	return verdict, nil
}

// evaluation is the result of operation condition.
type evaluation struct {
	aap.Evaluation
	Parsed  bool   `json:"parsed"`
	Problem string `json:"problem,omitempty"` // why the condition does not parse
	Column  int    `json:"column,omitempty"`  // place of the problem, in characters from 1
}

func specCondition(r request) (any, error) {
	var source string
	if err := r.decode("condition", &source); err != nil {
		return nil, err
	}
	expr, err := condition.Parse(source)
	var problem *condition.SyntaxError
	if errors.As(err, &problem) {
		return evaluation{Problem: problem.Error(), Column: problem.Column}, nil
	}
	trace, err := r.fields()
	if err != nil {
		return nil, err
	}
	return evaluation{Evaluation: aap.Evaluate(expr, trace), Parsed: true}, nil
}

func specDrift(r request) (any, error) {
	card, err := r.card()
	if err != nil {
		return nil, err
	}
	params, err := r.driftParams()
	if err != nil {
		return nil, err
	}
	samples, err := r.samples(drift.FactsOf(card))
	if err != nil {
		return nil, err
	}
	return drift.Detect(samples, params), nil
}

// driftParams returns the defaults, with the thresholds in the request.
func (r request) driftParams() (drift.Params, error) {
	p := drift.PublishedParams()
	if r.has("similarity_threshold") {
		if err := r.decode("similarity_threshold", &p.SimilarityThreshold); err != nil {
			return p, err
		}
	}
	if r.has("sustained_threshold") {
		if err := r.decode("sustained_threshold", &p.Sustained); err != nil {
			return p, err
		}
	}
	return p, p.Validate()
}

func (r request) samples(facts drift.CardFacts) ([]drift.Sample, error) {
	traces, err := r.traceList()
	if err != nil {
		return nil, err
	}
	samples := make([]drift.Sample, len(traces))
	for i, trace := range traces {
		samples[i] = drift.SampleOf(trace, facts)
	}
	return samples, nil
}

func specFeatures(r request) (any, error) {
	ofTrace := func(r request) (json.Marshaler, error) {
		trace, err := r.trace()
		if err != nil {
			return nil, err
		}
		return vector(similarity.TraceFeatures(trace, nil)), nil
	}
	ofCard := func(r request) (json.Marshaler, error) {
		card, err := r.card()
		if err != nil {
			return nil, err
		}
		return vector(similarity.CardFeatures(card)), nil
	}
	return featuresOf(r, ofTrace, ofCard)
}

func specSimilarity(r request) (any, error) {
	trace, card, err := r.traceAndCard()
	if err != nil {
		return nil, err
	}
	return newScore(similarity.NewCard(card).Alignment(trace)), nil
}

// series is the result of operation trace_similarities.
type series struct {
	Baseline     int       `json:"baseline"` // number of traces that form it
	Order        []string  `json:"order"`    // trace ids in order of time
	Similarities []float64 `json:"similarities"`
}

func specTraceSimilarities(r request) (any, error) {
	params, err := r.driftParams()
	if err != nil {
		return nil, err
	}
	samples, err := r.samples(drift.CardFacts{})
	if err != nil {
		return nil, err
	}
	points, _ := drift.Series(samples, params)
	c := series{Order: []string{}, Similarities: []float64{}}
	for _, point := range points {
		c.Order = append(c.Order, point.TraceID)
		if point.Status == drift.StatusBaseline {
			c.Baseline++
		} else {
			c.Similarities = append(c.Similarities, point.Similarity)
		}
	}
	return c, nil
}
