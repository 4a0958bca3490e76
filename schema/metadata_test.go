package schema

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Members of context.metadata belong to the publisher: a member with a known name but another
// type or range is kept and ignored.
func TestMetadataOfAnotherConvention(t *testing.T) {
	for old, others := range map[string][]string{
		`"session_end": true`:     {`"session_end": "true"`, `"session_end": 1`, `"session_end": null`, `"session_end": false`, `"session_end": {}`},
		`"sequence_number": 7`:    {`"sequence_number": "7"`, `"sequence_number": -7`, `"sequence_number": 7.5`, `"sequence_number": 7e0`, `"sequence_number": null`, `"sequence_number": [7]`, `"sequence_number": 99999999999999999999`},
		`"tool_name": "shop.add"`: {`"tool_name": 5`, `"tool_name": null`, `"tool_name": {"server": "s"}`},
		`"cost_cents": 2`:         {`"cost_cents": -2`, `"cost_cents": "2"`, `"cost_cents": 0.5`, `"cost_cents": null`, `"cost_cents": 9007199254740992`},
		`"error": "sold out"`:     {`"error": {"code": 5}`, `"error": false`, `"error": null`},
	} {
		for _, other := range others {
			raw := edit(t, old, other)
			trace, err := Admit("", []byte(raw))
			if err != nil {
				t.Errorf("%s: %v", other, err)
				continue
			}
			c := &trace.Context
			passedOver := map[string]bool{
				`"session_end": true`: !c.SessionEnd, `"sequence_number": 7`: !c.HasSequenceNumber && c.SequenceNumber == 0,
				`"tool_name": "shop.add"`: c.Execution.ToolName == "", `"cost_cents": 2`: c.Execution.CostCents == 0, `"error": "sold out"`: c.Execution.Error == "",
			}
			for member, empty := range passedOver {
				if (member == old) != empty {
					t.Errorf("%s: %s was skipped: %v", other, member, empty)
				}
			}
			if !c.Execution.Present || string(c.Execution.Inputs) != `{"id": 1}` || len(c.Metadata) != 4 || string(trace.Raw) != raw {
				t.Errorf("%s: the rest changed: %+v", other, c)
			}
		}
	}
}

func TestExecutionThatIsNoObject(t *testing.T) {
	const execution = `{"tool_name": "shop.add", "inputs": {"id": 1}, "outputs": [true], "cost_cents": 2, "error": "sold out"}`
	for _, other := range []string{`"done"`, `null`, `[1, 2]`, `true`, `3`} {
		trace, err := Admit("", []byte(edit(t, execution, other)))
		if err != nil {
			t.Errorf("%s: %v", other, err)
			continue
		}
		kept, _ := trace.Context.Metadata.Get("execution")
		if trace.Context.Execution.Present || string(kept) != other || !trace.Context.SessionEnd {
			t.Errorf("%s: got %+v", other, trace.Context)
		}
	}
}

// The limits of every record hold inside metadata as well.
func TestMetadataKeepsTheLimits(t *testing.T) {
	for _, c := range []struct{ old, new, pointer string }{
		{`"sequence_number": 7`, `"sequence_number": 1e400`, "/context/metadata/sequence_number"},
		{`"cost_cents": 2`, `"cost_cents": [1e400]`, "/context/metadata/execution/cost_cents"},
		{`"session_end": true`, `"session_end": true, "session_end": true`, "/context/metadata/session_end"},
		{`"error": "sold out"`, `"error": nul`, "/context/metadata/execution/error"},
	} {
		_, err := Admit("", []byte(edit(t, c.old, c.new)))
		if err == nil || !refusesAt(err, c.pointer) {
			t.Errorf("%s: got %v", c.new, fmt.Sprint(err))
		}
	}
}

// refusesAt reports whether err is a refusal with a fault at that pointer.
func refusesAt(err error, pointer string) bool {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return false
	}
	return slices.ContainsFunc(refusal.Faults, func(f Fault) bool { return f.Pointer == pointer })
}
