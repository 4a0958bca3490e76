package jsonschema_test

import (
	"encoding/json"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestCorpusValidates(t *testing.T) {
	for name, file := range map[string]string{"ap-trace": "corpus/traces.jsonl.gz", "alignment-card": "corpus/cards.jsonl"} {
		oracle := compile(t, name, nil)
		for _, line := range published.Lines(t, file) {
			if err := oracle.Validate(parse(t, line)); err != nil {
				t.Errorf("%.200s: %v", line, err)
			}
		}
	}
}

// vector is a published vector: a card with one trace or several.
type vector struct {
	Card   json.RawMessage
	Trace  json.RawMessage
	Traces []json.RawMessage
}

func (v vector) records() (cards, traces []json.RawMessage) {
	if v.Card != nil {
		cards = append(cards, v.Card)
	}
	if v.Trace != nil {
		traces = append(traces, v.Trace)
	}
	return cards, append(traces, v.Traces...)
}

func TestPublishedVectorsValidate(t *testing.T) {
	cardSchema, traceSchema := compile(t, "alignment-card", nil), compile(t, "ap-trace", nil)
	hold := func(oracle *jsonschema.Schema, file string, records []json.RawMessage) {
		for _, record := range records {
			if err := oracle.Validate(parse(t, record)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for _, file := range []string{
		"valid_traces/approved_escalation", "valid_traces/compliant_recommendation",
		"invalid_traces/forbidden_action", "invalid_traces/missed_escalation", "invalid_traces/undeclared_value",
		"drift_cases/autonomy_expansion_sequence", "drift_cases/value_drift_sequence",
	} {
		var v vector
		if err := json.Unmarshal(published.Read(t, "conformance/aap/"+file+".json"), &v); err != nil {
			t.Fatal(err)
		}
		cards, traces := v.records()
		hold(cardSchema, file, cards)
		hold(traceSchema, file, traces)
	}
	for file, oracle := range map[string]*jsonschema.Schema{"spec_example_card": cardSchema, "spec_example_trace": traceSchema} {
		var record json.RawMessage
		if err := json.Unmarshal(published.Read(t, "conformance/aap/"+file+".json"), &record); err != nil {
			t.Fatal(err)
		}
		hold(oracle, file, []json.RawMessage{record})
	}
}

// Some records of the published cases are invalid; schema and decoder must agree on which.
func TestSchemasAndDecodersAgreeOnPublishedCases(t *testing.T) {
	cards, traces := subjects[1], subjects[0]
	cardSchema, traceSchema := compile(t, cards.schema, nil), compile(t, traces.schema, nil)
	taken, refused := 0, 0
	hold := func(s subject, oracle *jsonschema.Schema, records []json.RawMessage) {
		for _, record := range records {
			err := s.decode(record)
			compare(t, record, oracle.Validate(parse(t, record)), err)
			if err == nil {
				taken++
			} else {
				refused++
			}
		}
	}
	for _, line := range published.Lines(t, "conformance/aap/cases.jsonl") {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			continue // no card of that name
		}
		cardsOf, tracesOf := v.records()
		hold(cards, cardSchema, cardsOf)
		hold(traces, traceSchema, tracesOf)
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d records accepted, %d refused: there are too few cases", taken, refused)
	}
}
