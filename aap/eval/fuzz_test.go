package eval

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Every line gets one answer, which is a result or an error.
func FuzzRun(f *testing.F) {
	both := `"trace":` + traceJSON + `,"card":` + cardJSON
	for _, seed := range []string{
		ask("1", "verify", both),
		ask("2", "condition", `"condition":"amount > 1","trace":`+traceJSON),
		ask("3", "drift", `"sustained_threshold":1,"card":`+cardJSON+`,`+drifting()),
		ask("4", "coherence", `"my_card":`+cardJSON+`,"their_card":`+cardJSON+`,"task_values":["a",null,{}]`),
		ask("5", "fleet", `"cards":[{"agentId":"x","card":`+cardJSON+`},{"agentId":"y","card":`+cardJSON+`}]`),
		ask("6", "features", both), ask("7", "similarity", both), ask("8", "trace_similarities", drifting()),
		`{"op":"verify","trace":null,"card":[]}`, "{", "[]", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(bytes.ReplaceAll(line, []byte("\n"), nil))
		for _, profile := range []Profile{ProfileReference, ProfileSpec} {
			var out bytes.Buffer
			if err := Run(bytes.NewReader(line), &out, Options{Profile: profile, Now: judgedAt}); err != nil {
				t.Fatal(err)
			}
			if len(line) == 0 {
				continue
			}
			var a result
			if err := json.Unmarshal(out.Bytes(), &a); err != nil {
				t.Fatalf("%s: answer %q: %v", profile, out.Bytes(), err)
			}
			if a.OK == (a.Error != "") || a.OK == (a.Result == nil) {
				t.Fatalf("%s: answer %q is neither result nor error", profile, out.Bytes())
			}
		}
	})
}
