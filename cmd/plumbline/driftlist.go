package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// listView is AAP section 8.2 applied to the complete list of stored traces, and the
// differences from what the stream found.
type listView struct {
	Traces    int                 `json:"traces"`          // the length of the list
	N         int                 `json:"baseline_traces"` // follows from the length
	Threshold float64             `json:"threshold"`
	Sustained int                 `json:"sustained"`
	Alerts    []schema.DriftAlert `json:"alerts"`

	Same        int                 `json:"alerts_of_both"`        // alerts over the same traces
	OnlyList    []schema.DriftAlert `json:"alerts_of_letter_only"` // alerts that the stream does not have
	OnlyStream  []schema.DriftAlert `json:"alerts_of_stream_only"` // alerts that the complete list does not give
	NotUsed     int                 `json:"not_used_by_stream"`    // traces that the stream left out: too late, or a second content
	NotMeasured int                 `json:"not_measured_yet"`      // traces without a point
	Differing   int                 `json:"differing_points"`      // traces with another status

	points []aapdrift.Point
}

// detectOverList judges an agent's stored traces as one complete list. Each trace is judged
// under its card, if the card is known.
func detectOverList(ctx context.Context, s *store.Store, agent, card string, p aapdrift.Params) (*listView, error) {
	if p == (aapdrift.Params{}) { // of a state that an older engine wrote
		p = aapdrift.PublishedParams()
	}
	facts, err := factsOf(ctx, s, agent)
	if err != nil {
		return nil, err
	}
	var samples []aapdrift.Sample
	for stored, err := range s.AgentTraces(ctx, agent, card) {
		if err != nil {
			return nil, err
		}
		sample, err := sampleOf(stored, facts)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	v := &listView{
		Traces: len(samples), Threshold: p.SimilarityThreshold, Sustained: p.Sustained,
		OnlyList: []schema.DriftAlert{}, OnlyStream: []schema.DriftAlert{},
	}
	v.points, v.Alerts = aapdrift.Series(samples, p)
	p.Window = len(samples)
	v.N = p.BaselineTraces()
	return v, nil
}

// factsOf reads the facts that drift needs about the cards of an agent.
func factsOf(ctx context.Context, s *store.Store, agent string) (map[string]aapdrift.CardFacts, error) {
	cards, err := s.CardsOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	facts := make(map[string]aapdrift.CardFacts, len(cards))
	for id, raw := range cards {
		card, err := schema.DecodeCard(raw)
		if err != nil {
			return nil, fmt.Errorf("card %s: %w", id, err)
		}
		facts[id] = aapdrift.FactsOf(card)
	}
	return facts, nil
}

func sampleOf(stored *store.StoredTrace, facts map[string]aapdrift.CardFacts) (aapdrift.Sample, error) {
	trace, err := schema.Admit(stored.AgentID, stored.Raw)
	if err != nil {
		return aapdrift.Sample{}, fmt.Errorf("trace %s: %w", stored.TraceID, err)
	}
	known, ok := facts[trace.CardID]
	if !ok {
		known = aapdrift.CardFacts{CardID: trace.CardID}
	}
	return aapdrift.SampleOf(trace, known), nil
}

// compare finds the differences from the stream's results.
func (v *listView) compare(reports []store.DriftReport) {
	statuses, streamed := map[schema.Digest]string{}, []schema.DriftAlert{}
	for i := range reports {
		for j := range reports[i].Points {
			statuses[reports[i].Points[j].TraceDigest] = reports[i].Points[j].Status
		}
		for j := range reports[i].Alerts {
			streamed = append(streamed, reports[i].Alerts[j].DriftAlert)
		}
	}
	for i := range v.points {
		switch status, measured := statuses[v.points[i].Digest]; {
		case !measured:
			v.NotMeasured++
		case status == "late" || status == "conflict":
			v.NotUsed++
		case status != string(v.points[i].Status):
			v.Differing++
		}
	}
	for i := range v.Alerts {
		if among(streamed, &v.Alerts[i]) {
			v.Same++
		} else {
			v.OnlyList = append(v.OnlyList, v.Alerts[i])
		}
	}
	for i := range streamed {
		if !among(v.Alerts, &streamed[i]) {
			v.OnlyStream = append(v.OnlyStream, streamed[i])
		}
	}
}

// among reports whether one of the alerts is over the same traces.
func among(alerts []schema.DriftAlert, a *schema.DriftAlert) bool {
	return slices.ContainsFunc(alerts, func(other schema.DriftAlert) bool { return slices.Equal(other.TraceIDs, a.TraceIDs) })
}

func (v *listView) write(w io.Writer) error {
	heading := fmt.Sprintf("AAP section 8.2 over the complete list: %d traces, a baseline of the first %d", v.Traces, v.N)
	rows := [][]any{
		{"alerts", fmt.Sprintf("%d over the list, %d of them also in the stream, %d in the stream only", len(v.Alerts), v.Same, len(v.OnlyStream))},
	}
	rows = append(rows, alertsOn("only over the list", v.OnlyList)...)
	rows = append(rows, alertsOn("only in the stream", v.OnlyStream)...)
	rows = append(rows, []any{"points", fmt.Sprintf("%d with another status; the stream left out %d (late, or a second content) and has not measured %d yet",
		v.Differing, v.NotUsed, v.NotMeasured)})
	if len(v.OnlyList)+len(v.OnlyStream)+v.Differing+v.NotUsed > 0 {
		rows = append(rows, []any{"why", "the stream's baseline does not grow with the list, each card has its own, and late traces are not used"})
	}
	return section(w, heading, rows)
}

func alertsOn(where string, alerts []schema.DriftAlert) (rows [][]any) {
	for i := range alerts {
		rows = append(rows, []any{where, fmt.Sprintf("%s %s: %s", cell(alerts[i].DetectionTimestamp), alerts[i].Analysis.DriftDirection,
			strings.Join(alerts[i].TraceIDs, " "))})
	}
	return rows
}
