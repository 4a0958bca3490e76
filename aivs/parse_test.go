package aivs

import (
	"fmt"
	"strings"
	"testing"
)

// The error names the member of draft section 3.2 that a row lacks, even if another object has it.
func TestMissingMemberIsNamed(t *testing.T) {
	whole := string((&Row{ID: 1, SessionID: "s", ActionType: "a", ToolName: "t", Timestamp: 1.5}).AppendJSON(nil))
	for _, name := range []string{"id", "session_id", "action_type", "tool_name", "inputs_json", "outputs_json",
		"cost_cents", "error", "timestamp", "prev_hash", "row_hash"} {
		line := strings.Replace(whole, `"`+name+`"`, `"x_`+name+`"`, 1)
		for _, line := range []string{line, strings.TrimSuffix(line, "}") + `, "further": {"` + name + `": 1}}`} {
			if _, err := ParseRow([]byte(line)); err == nil || err.Error() != fmt.Sprintf(saysMember, name) {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// The members of the nine-field dialect are returned with the row, also before a fault. Only
// strings count as digests.
func TestMembersOfTheNineFieldDialect(t *testing.T) {
	row := (&Row{ID: 1, SessionID: "s", ActionType: "a", ToolName: "t", Timestamp: 1.5}).AppendJSON(nil)
	with := func(members string) string { return strings.TrimSuffix(string(row), "}") + ", " + members + "}" }
	for _, c := range []struct {
		line            string
		inputs, outputs string // the digests; "" for none
		versioned       bool
	}{
		{with(`"inputs_digest": "i", "outputs_digest": "o", "schema_version": 2`), "i", "o", true},
		{string(row), "", "", false},
		{with(`"schema_version": null`), "", "", true},
		{with(`"inputs_digest": null, "outputs_digest": 5`), "", "", false},
		{with(`"inputs_digest": ["i"], "note": "n", "further": "o"`), "", "", false},
		{`{"id": 1, "session_id": [{"a": `, "", "", false},
		{string(row[:40]), "", "", false},
		{`{"outputs_digest": "o", "id": -1}`, "", "o", false},
		{with(`"outputs_digest": "o"`), "", "o", false},
	} {
		_, text, _ := parseRow([]byte(c.line))
		if in, out := textOf(text.InputsDigest), textOf(text.OutputsDigest); in != c.inputs || out != c.outputs || (text.SchemaVersion != nil) != c.versioned {
			t.Errorf("%s: digests %q and %q, version %s", c.line, in, out, text.SchemaVersion)
		}
	}
}

// JSON that is nested deeper than 500 levels is refused, since readers have different limits.
// Adjacent brackets and brackets in strings do not count as levels.
func TestDepthOfJSON(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat(`{"a":[`, levels/2) + strings.Repeat("]}", levels/2) }
	for name, c := range map[string]struct {
		text string
		fits bool
	}{
		"as deep as may be": {deep(maxDepth), true},
		"a level deeper":    {"[" + deep(maxDepth) + "]", false},
		"side by side":      {"[" + strings.Repeat("[],{},", maxDepth) + "[]]", true},
		"deep, twice":       {"[[" + deep(maxDepth-2) + "," + deep(maxDepth-2) + "]]", true},
		"twice too deep":    {"[[[" + deep(maxDepth-2) + "," + deep(maxDepth-2) + "]]]", false},
		"in a string":       {`"` + strings.Repeat("[{", maxDepth) + `"`, true},
		"behind a quote":    {`"\"` + strings.Repeat("[{", maxDepth) + `"`, true},
		"behind a string":   {`["\\",` + deep(maxDepth) + "]", false},
	} {
		if err := checkDepth([]byte(c.text)); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
