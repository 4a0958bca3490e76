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

	"github.com/plumbline/plumbline/clients/clientstest"
)

// publishers are the programs of examples/ that publish the session, with what each one needs.
var publishers = []struct{ name, program, command string }{
	{"curl", "curl", "sh examples/curl/publish.sh DIRECTORY"},
	{"python", "python3", "PYTHONPATH=clients/python python3 examples/python/agent.py DIRECTORY"},
	{"typescript", "node", "node examples/typescript/agent.js DIRECTORY"},
	{"go", "go", "programs/go DIRECTORY"},
	{"nats", "go", "plumbline card put DIRECTORY/card.json && programs/nats DIRECTORY"},
}

// publishExamples publishes the session with every program, as an agent of its own for each. The
// stored traces and their verdicts are the same, except for ids and times.
func (v *visitor) publishExamples(t *testing.T) {
	if err := buildPrograms(filepath.Join(v.dir, "programs"), "../../examples/go", "../../examples/nats"); err != nil {
		t.Fatal(err)
	}
	compiler := filepath.Join(clientstest.Dir(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	if out, err := clientstest.Node(t, compiler, "-p", "../../examples/typescript").CombinedOutput(); err != nil {
		t.Fatalf("build examples/typescript: %v\n%s", err, out)
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

// decided is what every program must store of a trace. Ids and times differ, and what describes the
// options and the tool is each program's own.
type decided struct {
	Type, Name, Category string
	Item                 string
	Amount               float64
	Options              int
	Reasoning            string
	Values               []string
	Escalation           map[string]any
	Sequence             int
	Executed             bool
	Verdict              judged
}

// judged is a verdict by its types.
type judged struct {
	Violations  []string `json:"violation_types"`
	Findings    []string `json:"finding_types"`
	Recommended string   `json:"recommended_action"`
}

// decidedOf reads a trace.
func decidedOf(t *testing.T, raw []byte) decided {
	t.Helper()
	var trace struct {
		Action struct {
			Type, Name, Category string
			Parameters           struct {
				Item   string
				Amount float64
			}
		}
		Decision struct {
			Alternatives []any    `json:"alternatives_considered"`
			Reasoning    string   `json:"selection_reasoning"`
			Values       []string `json:"values_applied"`
		}
		Escalation map[string]any
		Context    struct {
			Metadata struct {
				Sequence  int `json:"sequence_number"`
				Execution any
			}
		}
	}
	if err := json.Unmarshal(raw, &trace); err != nil {
		t.Fatal(err)
	}
	if response, ok := trace.Escalation["principal_response"].(map[string]any); ok {
		delete(response, "timestamp")
	}
	return decided{
		Type: trace.Action.Type, Name: trace.Action.Name, Category: trace.Action.Category,
		Item: trace.Action.Parameters.Item, Amount: trace.Action.Parameters.Amount,
		Options: len(trace.Decision.Alternatives), Reasoning: trace.Decision.Reasoning, Values: trace.Decision.Values, Escalation: trace.Escalation,
		Sequence: trace.Context.Metadata.Sequence, Executed: trace.Context.Metadata.Execution != nil,
	}
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
