package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// subject is a kind of record with both a schema and a decoder.
type subject struct {
	schema   string
	decode   func([]byte) error
	examples []string
}

var subjects = []subject{
	{"ap-trace", func(raw []byte) error { _, err := schema.Admit("", raw); return err }, []string{fullTrace}},
	{"alignment-card", func(raw []byte) error { _, err := schema.DecodeCard(raw); return err }, []string{fullCard, unifiedCard}},
	{"value-coherence", func(raw []byte) error { _, err := schema.DecodeHandshake(raw); return err },
		[]string{cardRequest, cardResponse, coherenceCheck, coherenceResult, taskResult}},
}

// Schema and decoder agree on every single change at every place of a record.
func TestSchemasAndDecodersAgreeOnEveryPlace(t *testing.T) {
	edits := map[string]func(any) (any, bool){
		"drop":          func(any) (any, bool) { return nil, false },
		"foreign":       func(old any) (any, bool) { return with(old, "own"), true },
		"deep nesting":  func(old any) (any, bool) { return nested(old, 70), true },
		"nested":        func(old any) (any, bool) { return nested(old, 1), true },
		"empty list":    func(old any) (any, bool) { return repeated(old, 0), true },
		"twice":         func(old any) (any, bool) { return repeated(old, 2), true },
		"empty object":  func(any) (any, bool) { return map[string]any{}, true },
		"too long text": func(any) (any, bool) { return strings.Repeat("x", 513), true },
	}
	for name, value := range map[string]any{"null": nil, "true": true, "empty text": "", "wrong word": "x", "time": "2026-01-31T12:00:00Z", "lower case": "2026-01-31t12:00:00z",
		"leap second": "2016-12-31T23:59:60Z", "leap second elsewhere": "2017-01-01T08:59:60.5+09:00", "no leap second": "2016-12-31T22:59:60Z", "second 61": "2016-12-31T23:59:61Z",
		"negative": json.Number("-1"), "zero": json.Number("0"), "fraction": json.Number("0.5"), "above one": json.Number("1.5"), "huge": json.Number("1e400")} {
		edits[name] = func(any) (any, bool) { return value, true }
	}
	for _, s := range subjects {
		oracle := compile(t, s.schema, nil)
		for _, example := range s.examples {
			tree := parse(t, []byte(example))
			for _, path := range placesOf(tree, nil) {
				for name, edit := range edits {
					if name == "drop" && len(path) == 0 {
						continue
					}
					mutant := change(tree, path, edit)
					raw, err := json.Marshal(mutant)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, raw, oracle.Validate(mutant), s.decode(raw))
				}
			}
		}
	}
}

// A schema refuses a record exactly when its decoder does, except for the rules that no schema
// can express.
func TestSchemasAndDecodersAgree(t *testing.T) {
	for _, s := range subjects {
		oracle := compile(t, s.schema, nil)
		for i, example := range s.examples {
			tree := parse(t, []byte(example))
			t.Run(fmt.Sprintf("%s %d", s.schema, i), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					mutant := tree
					for range rapid.IntRange(0, 3).Draw(t, "mutations") {
						mutant = mutate(t, mutant)
					}
					raw, err := json.Marshal(mutant)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, raw, oracle.Validate(mutant), s.decode(raw))
				})
			})
		}
	}
}

// tester is the common part of *testing.T and *rapid.T that the tests use.
type tester interface {
	Fatalf(format string, args ...any)
}

func compare(t tester, raw []byte, schemaErr, decodeErr error) {
	if schemaErr != nil && decodeErr == nil {
		t.Fatalf("the decoder accepts %s, but the schema refuses it: %v", raw, schemaErr)
	}
	var refusal *schema.Refusal
	if schemaErr != nil || !errors.As(decodeErr, &refusal) {
		return
	}
	for _, fault := range refusal.Faults {
		if ruleOf(fault.Message) == "" {
			t.Fatalf("the schema accepts %s, but the decoder refuses it: %s: %s", raw, fault.Pointer, fault.Message)
		}
	}
}
