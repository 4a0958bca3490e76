package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// publishers are the programs of examples/ that publish the session, with what each one needs.
var publishers = []struct{ name, program, command string }{
	{"curl", "curl", "sh examples/curl/publish.sh DIRECTORY"},
	{"go", "go", "bin/examples-go DIRECTORY"},
	{"nats", "go", "plumbline card put DIRECTORY/card.json && bin/examples-nats DIRECTORY"},
}

// publishExamples publishes the session with every program, as an agent of its own for each. The
// stored traces and their verdicts are the same, except for ids and times.
func (v *visitor) publishExamples(t *testing.T) {
	for _, name := range []string{"go", "nats"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(v.dir, "bin", "examples-"+name), "../../examples/"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build examples/%s: %v\n%s", name, err, out)
		}
	}
	v.env = append(v.env, "NATS_URL="+v.at.NATSURL)
	var ran []string
	for _, p := range publishers {
		if _, err := exec.LookPath(p.program); err != nil {
			t.Logf("%s is not installed: examples/%s is not tested", p.program, p.name)
			continue
		}
		directory := v.copyExample(t, p.name)
		if out, err := v.shell(t.Context(), strings.ReplaceAll(p.command, "DIRECTORY", directory)).CombinedOutput(); err != nil {
			t.Fatalf("examples/%s: %v\n%s", p.name, err, out)
		}
		ran = append(ran, p.name)
	}
	want := expected(t, "../../examples/session.jsonl")
	for _, name := range ran {
		if got := v.stored(t, "did:web:"+name+".example", len(want)); !reflect.DeepEqual(got, want) {
			t.Errorf("examples/%s: stored\n%s\nwant\n%s", name, indented(t, got), indented(t, want))
		}
	}
}

// copyExample writes the card and the session for another agent, and returns their directory.
func (v *visitor) copyExample(t *testing.T, agent string) string {
	t.Helper()
	directory := filepath.Join(v.dir, "as-"+agent)
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("did:web:buyer.example", "did:web:"+agent+".example", "ac-buyer-1", "ac-"+agent)
	for _, name := range []string{"card.json", "session.jsonl"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		v.write(t, filepath.Join("as-"+agent, name), other.Replace(string(text)))
	}
	return directory
}

// decided is what a program must store of a trace: all but ids, times and what a recorder adds.
type decided struct {
	Action     map[string]any
	Decision   map[string]any
	Escalation map[string]any
	Sequence   float64
	Execution  map[string]any
	Verdict    judged
}

// judged is a verdict by its types.
type judged struct {
	Violations  []string `json:"violation_types"`
	Findings    []string `json:"finding_types"`
	Recommended string   `json:"recommended_action"`
}

// decidedOf reads a trace.
func decidedOf(t *testing.T, raw []byte) (d decided) {
	t.Helper()
	var trace struct {
		Action, Decision, Escalation map[string]any
		Context                      struct {
			Metadata struct {
				Sequence  float64 `json:"sequence_number"`
				Execution map[string]any
			}
		}
	}
	if err := json.Unmarshal(raw, &trace); err != nil {
		t.Fatal(err)
	}
	if response, ok := trace.Escalation["principal_response"].(map[string]any); ok {
		delete(response, "timestamp")
	}
	return decided{trace.Action, trace.Decision, trace.Escalation, trace.Context.Metadata.Sequence, trace.Context.Metadata.Execution, judged{}}
}

// expected returns the session of a file, with the verdicts that README.md of the examples tells.
func expected(t *testing.T, file string) (all []decided) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		d := decidedOf(t, line)
		d.Verdict = judged{Violations: []string{}, Findings: []string{}, Recommended: "proceed"}
		all = append(all, d)
	}
	all[len(all)-1].Verdict = judged{Violations: []string{"MISSED_ESCALATION"}, Findings: []string{}, Recommended: "deny"}
	return all
}

// stored waits until an agent's traces are judged, and returns them in order.
func (v *visitor) stored(t *testing.T, agent string, count int) (all []decided) {
	t.Helper()
	query := "SELECT raw, violation_types, finding_types, recommended_action FROM visible_traces JOIN current_verdicts USING (agent_id, trace_id) " +
		"WHERE agent_id = '" + agent + "' AND status = 'judged' ORDER BY sequence_number"
	out := v.await(t, `plumbline sql --json "`+query+`"`, func(out []byte) bool { return bytes.Count(out, []byte("\n")) == count }, "want all traces")
	for line := range bytes.Lines(out) {
		var row struct {
			Raw string
			judged
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		d := decidedOf(t, []byte(row.Raw))
		d.Verdict = row.judged
		all = append(all, d)
	}
	return all
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}
