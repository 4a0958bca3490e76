// Package examples_test holds the example files to the rules that they are examples of.
package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// judged registers a card, admits a trace without warnings, and returns the verdict.
func judged(t *testing.T, cardText, traceText []byte) *schema.Verdict {
	t.Helper()
	card, err := aap.Register(cardText)
	if err != nil {
		t.Fatal(err)
	}
	decoder := schema.Decoder{Warn: true}
	var trace schema.Trace
	if err := decoder.Admit(&trace, "", traceText); err != nil {
		t.Fatal(err)
	}
	for _, warning := range decoder.Warnings() {
		t.Errorf("%s: %s %s", trace.TraceID, warning.Pointer, warning.Message)
	}
	if trace.CardID != card.Card.CardID || trace.AgentID != card.Card.AgentID {
		t.Errorf("%s is of agent %s and card %s", trace.TraceID, trace.AgentID, trace.CardID)
	}
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var verdict schema.Verdict
	judge.Verify(&trace, card, aap.Facts{Received: now}, now, &verdict)
	return &verdict
}

// clean requires that a verdict finds no fault.
func clean(t *testing.T, v *schema.Verdict) {
	t.Helper()
	warnings := slices.DeleteFunc(v.Warnings, func(r schema.Remark) bool { return r.Type == schema.WarnLowBehavioralSimilarity })
	if len(v.Violations)+len(v.Findings)+len(warnings) > 0 {
		t.Errorf("%s: %+v %+v %+v", v.TraceID, v.Violations, v.Findings, warnings)
	}
}

func TestSmallCardAndTrace(t *testing.T) {
	clean(t, judged(t, read(t, "card.json"), read(t, "trace.json")))
}

// The session is as README.md describes it: the last trace violates the card, and no other does.
func TestSessionHasOneViolation(t *testing.T) {
	lines := bytes.Split(bytes.TrimSpace(read(t, "session.jsonl")), []byte("\n"))
	if len(lines) != 5 {
		t.Fatalf("%d traces", len(lines))
	}
	card := read(t, "card.json")
	for _, line := range lines[:4] {
		clean(t, judged(t, card, line))
	}
	v := judged(t, card, lines[4])
	if len(v.Violations) != 1 || v.Violations[0].Type != schema.MissedEscalation || len(v.Findings) > 0 || v.RecommendedAction != schema.Deny {
		t.Errorf("the last trace: %+v", v)
	}
}

// withoutComments removes the lines that are comments, as the files tell their readers to do.
func withoutComments(text []byte) []byte {
	return regexp.MustCompile(`(?m)^ *//.*\n`).ReplaceAll(text, nil)
}

func TestAnnotatedPairIsValid(t *testing.T) {
	card, trace := withoutComments(read(t, "annotated/card.jsonc")), withoutComments(read(t, "annotated/trace.jsonc"))
	clean(t, judged(t, card, trace))
	changed := bytes.Replace(trace, []byte(`"confidence": 0.9`), []byte(`"confidence": 0.8`), 1)
	if v := judged(t, card, changed); len(v.Findings) != 1 || v.Findings[0].Type != schema.BadSignature {
		t.Errorf("the signature of a changed trace is not examined: %+v", v.Findings)
	}
}

// Every member that the JSON Schemas name is shown with an explanation, or listed as left out.
func TestAnnotatedPairShowsEveryMember(t *testing.T) {
	for name, of := range map[string]string{"card": "alignment-card", "trace": "ap-trace"} {
		text := read(t, "annotated/"+name+".jsonc")
		var document any
		if err := json.Unmarshal(withoutComments(text), &document); err != nil {
			t.Fatal(err)
		}
		shown := map[string]bool{}
		collect(document, "", shown)
		for _, list := range regexp.MustCompile(`(?m)^ *// Left out ([^:]*):`).FindAllSubmatch(text, -1) {
			for member := range strings.SplitSeq(string(list[1]), ", ") {
				shown[member] = true
			}
		}
		definition := newDefinition(t, of)
		members := definition.members(definition.root, "", shown)
		if len(members) < 30 {
			t.Errorf("%s: the schema names %d members", name, len(members))
		}
		for _, member := range members {
			if !shown[member] {
				t.Errorf("annotated/%s.jsonc neither shows nor leaves out %s", name, member)
			}
		}
	}
}

// collect adds the pointers of all members of a value. * stands for an element of an array.
func collect(value any, at string, to map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			to[at+"/"+name] = true
			to[at+"/*"] = true // where the schema leaves the name to the publisher
			collect(member, at+"/"+name, to)
			collect(member, at+"/*", to)
		}
	case []any:
		for _, element := range value {
			collect(element, at+"/*", to)
		}
	}
}

// definition is a JSON Schema.
type definition struct{ root map[string]any }

func newDefinition(t *testing.T, name string) *definition {
	t.Helper()
	var d definition
	if err := json.Unmarshal(read(t, "../schema/json/"+name+".schema.json"), &d.root); err != nil {
		t.Fatal(err)
	}
	return &d
}

// members returns the pointers of all members that a schema names. It does not look into members
// that are left out.
func (d *definition) members(of map[string]any, at string, shown map[string]bool) (found []string) {
	if ref, ok := of["$ref"].(string); ok {
		definitions := d.root["$defs"].(map[string]any)
		found = d.members(definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), at, shown)
	}
	properties, _ := of["properties"].(map[string]any)
	for name, member := range properties {
		found = append(found, at+"/"+name)
		if inner, ok := member.(map[string]any); ok && !d.leftOut(at+"/"+name, shown) {
			found = append(found, d.members(inner, at+"/"+name, shown)...)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := of[key].(map[string]any); ok {
			found = append(found, d.members(inner, at+"/*", shown)...)
		}
	}
	choices, _ := of["anyOf"].([]any)
	for _, choice := range choices {
		found = append(found, d.members(choice.(map[string]any), at, shown)...)
	}
	return found
}

// leftOut reports whether a member is listed, but none of its own members is shown.
func (d *definition) leftOut(member string, shown map[string]bool) bool {
	for other := range shown {
		if strings.HasPrefix(other, member+"/") {
			return false
		}
	}
	return shown[member]
}
