package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// summary summarises a row of similarities.
type summary struct {
	Mean  float64 `json:"mean_similarity"`
	Min   float64 `json:"min_similarity"`
	Trend float64 `json:"trend"` // least-squares slope, per trace
}

// matrix is the result of operation ssm: the self-similarity matrix of the traces in the given
// order, and against_card if the request has a card.
type matrix struct {
	Size     int         `json:"size"`
	TraceIDs []string    `json:"trace_ids"`
	Matrix   [][]float64 `json:"matrix"`
	summary
	AgainstCard *cardCourse `json:"against_card,omitempty"`
}

// cardCourse holds the similarity of every trace to the card.
type cardCourse struct {
	Similarities []float64 `json:"similarities"`
	summary
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
	answer := matrix{Size: len(traces), TraceIDs: m.TraceIDs, Matrix: make([][]float64, len(traces)), summary: summary(m.Summary())}
	for i := range answer.Matrix {
		answer.Matrix[i] = m.Row(i)
	}
	if r.has("card") {
		card, err := r.card()
		if err != nil {
			return nil, err
		}
		scores := similarity.AgainstCard(traces, similarity.NewCard(card))
		answer.AgainstCard = &cardCourse{scores, summary(similarity.Summarize(scores))}
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

// textScore is the result of operation text_similarity.
type textScore struct {
	Similarity float64 `json:"similarity"`
	Words      float64 `json:"words"`
	Characters float64 `json:"characters"`
	Metadata   float64 `json:"metadata"`
}

func specTextSimilarity(r request) (any, error) {
	a, errA := r.text("a")
	b, errB := r.text("b")
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	s, err := similarity.CompareTexts(a, b)
	if err != nil {
		return nil, err
	}
	return textScore(s), nil
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
