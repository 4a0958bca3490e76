package schema

import (
	"fmt"
	"strings"
	"testing"
)

// warned returns a trace with members added at a place.
func warned(at, members string) []byte {
	text := `{"trace_id":"t","agent_id":"a","card_id":"c","timestamp":"2026-01-31T12:30:00Z",` +
		`"action":{"type":"execute","name":"search","category":"bounded","target":{"type":"x"}},` +
		`"decision":{"alternatives_considered":[{"option_id":"a","description":"d"}],"selected":"a","selection_reasoning":"r","values_applied":[]},` +
		`"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"x","matched":false}],"principal_response":{"decision":"yes"}},` +
		`"context":{"session_id":"s","metadata":{"note":1,"execution":{"tool_name":"x"}}}}`
	return []byte(strings.Replace(text, at, at+members, 1))
}

func TestWarningsOfIgnoredMembers(t *testing.T) {
	d := Decoder{Warn: true}
	var trace Trace
	for name, c := range map[string]struct{ at, members, want string }{
		"none":                    {"{", "", ""},
		"a signature":             {"{", `"signature":{"algorithm":"x"},`, ""},
		"unknown":                 {"{", `"zzz":1,`, "/zzz is not a known member: it is stored and ignored"},
		"misspelt":                {"{", `"escalations":{},`, "/escalations is not a known member; did you mean escalation?"},
		"of an action":            {`"action":{`, `"parameter":{},`, "/action/parameter is not a known member; did you mean parameters?"},
		"of a target":             {`"target":{`, `"id":"x",`, "/action/target/id is not a known member"},
		"of a decision":           {`"decision":{`, `"confidense":1,`, "/decision/confidense is not a known member; did you mean confidence?"},
		"of an alternative":       {`[{`, `"scores":1,`, "/decision/alternatives_considered/0/scores is not a known member; did you mean score?"},
		"of an escalation":        {`"escalation":{`, `"status":"pending",`, "/escalation/status is not a known member"},
		"of a trigger":            {`"triggers_checked":[{`, `"match":true,`, "/escalation/triggers_checked/0/match is not a known"},
		"of a response":           {`"principal_response":{`, `"by":"x",`, "/escalation/principal_response/by is not a known"},
		"of a context, free":      {`"context":{`, `"task":"x",`, ""},
		"of a context, misspelt":  {`"context":{`, `"sesion_id":"x",`, "/context/sesion_id is not read as session_id"},
		"two slips, ten letters":  {`"action":{`, `"paramtrs":{},`, "/action/paramtrs is not a known member; did you mean parameters?"},
		"two slips, less letters": {`"escalation":{`, `"reasonXY":"r",`, "/escalation/reasonXY is not a known member: it is stored"},
		"of eight letters":        {`"context":{`, `"sesionid":"x",`, "/context/sesionid is not read as session_id"},
		"of seven letters":        {`"metadata":{`, `"erorexe":"x",`, ""},
		"a message's signature":   {`"metadata":{`, `"message_auth":{},`, ""},
		"of metadata, free":       {`"metadata":{`, `"amount":5,"sequence":3,`, ""},
		"of metadata, other case": {`"metadata":{`, `"sequenceNumber":3,`, "/context/metadata/sequenceNumber is not read as sequence_number"},
		"a number as a text":      {`"metadata":{`, `"sequence_number":"3",`, "/context/metadata/sequence_number is not a whole number of at least 0 and is ignored"},
		"no number":               {`"metadata":{`, `"sequence_number":null,"session_end":false,`, ""},
		"an end as a text":        {`"metadata":{`, `"session_end":"true",`, "/context/metadata/session_end is not true or false"},
		"of an execution":         {`"execution":{`, `"output":1,`, "/context/metadata/execution/output is not a known member; did you mean outputs?"},
		"costs as a text":         {`"execution":{`, `"cost_cents":"5","error":null,`, "/context/metadata/execution/cost_cents is not a whole number"},
		"an error that is none":   {`"execution":{`, `"error":{},`, "/context/metadata/execution/error is not a string"},
		"an execution of another": {`"note":1`, `,"execution":[]`, "/context/metadata/execution is not an object"},
	} {
		raw := warned(c.at, c.members)
		if strings.Contains(c.members, `"execution":`) { // replaces the existing block
			raw = []byte(strings.Replace(string(raw), `,"execution":{"tool_name":"x"}`, "", 1))
		}
		if err := d.Admit(&trace, "", raw); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		for _, w := range d.Warnings() {
			got += w.Pointer + " " + w.Message
			if w.Code != WarnIgnoredMember {
				t.Errorf("%s: the code is %s", name, w.Code)
			}
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || len(d.Warnings()) > 1 {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Warnings of one trace are bounded, and only a decoder with Warn set looks for them.
func TestWarningsAreBounded(t *testing.T) {
	members := ""
	for i := range 100 {
		members += fmt.Sprintf(`"x%d":1,`, i)
	}
	d := Decoder{Warn: true}
	var trace Trace
	if err := d.Admit(&trace, "", warned("{", members)); err != nil || len(d.Warnings()) != maxIgnoredWarnings {
		t.Errorf("%d warnings, error %v", len(d.Warnings()), err)
	}
	d.Warn = false
	members += `"context":{"sesion_id":"s","metadata":{"sequence_number":"3"}},`
	text := strings.Replace(string(warned("{", members)), `,"context":{"session_id":"s","metadata":{"note":1,"execution":{"tool_name":"x"}}}`, "", 1)
	if err := d.Admit(&trace, "", []byte(text)); err != nil || len(d.Warnings()) != 0 {
		t.Errorf("%d warnings although Warn is not set, error %v", len(d.Warnings()), err)
	}
}

// A trace without faults or warnings costs no allocation.
func TestCleanTracesAllocateNothing(t *testing.T) {
	d := Decoder{Warn: true}
	var trace Trace
	raw := []byte(strings.Replace(string(warned("{", "")), `"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"x","matched":false}],"principal_response":{"decision":"yes"}},`, "", 1))
	if allocated := testing.AllocsPerRun(100, func() {
		if err := d.Admit(&trace, "", raw); err != nil {
			t.Fatal(err)
		}
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
