package messages

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/reload"
)

func writePolicies(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // independent of the umask
		t.Fatal(err)
	}
	return path
}

func TestPolicyOfAnAgent(t *testing.T) {
	path := writePolicies(t, 0o600, `
agents:
  "*": {mode: warn}
  fleet-*: {mode: enforce, human: [read], agents: [], systems: {nightly: [read, send]}, tools: {read_file: read, pay: trade}}
  fleet-7: {}
  fleet-7*: {mode: enforce, agents: [read, write]}
`)
	p, err := OpenPolicies(path, false, slog.New(slog.DiscardHandler))
	if err != nil || !p.Given() {
		t.Fatal(err)
	}
	now := time.Now()
	if got := p.Of("x", now); got.Mode != message.Warn || got.Human != message.AllIntents || got.Agents != message.Read || len(got.Tools) != 0 {
		t.Errorf("any agent: %+v", got)
	}
	if got := p.Of("fleet-1", now); got.Mode != message.Enforce || got.Human != message.Read || got.Agents != 0 ||
		got.Systems["nightly"] != message.Read|message.Send || got.Tools["pay"] != message.Trade {
		t.Errorf("by prefix: %+v", got)
	}
	if got := p.Of("fleet-7", now); got.Mode != message.Off {
		t.Errorf("by its id: %+v", got)
	}
	if got := p.Of("fleet-77", now); got.Agents != message.Read|message.Write {
		t.Errorf("by the longest prefix: %+v", got)
	}
	none, err := OpenPolicies("", false, slog.New(slog.DiscardHandler))
	if err != nil || none.Given() || none.Of("x", now).Mode != message.Off {
		t.Errorf("without a file: %+v, error %v", none.Of("x", now), err)
	}
}

func TestPoliciesAreReloaded(t *testing.T) {
	path := writePolicies(t, 0o600, "agents: {a: {mode: warn}}")
	var log bytes.Buffer
	p, err := OpenPolicies(path, false, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, step := range []struct {
		text string
		want message.Mode
		says string
	}{
		{"agents: {a: {mode: enforce}}", message.Enforce, "reloaded"},
		{"agents: {a: {mode: loud}}", message.Enforce, "last valid ones stay in effect"},
		{"agents: {}", message.Off, "agents=0"},
	} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		now = now.Add(reload.Recheck)
		if got := p.Of("a", now).Mode; got != step.want || !strings.Contains(log.String(), step.says) {
			t.Errorf("step %d: %s, want %s; logged %s", i, got, step.want, log.String())
		}
	}
}

// A file with faults is refused completely, with every fault in the error.
func TestRefusedPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		mode os.FileMode
		text string
		want []string
	}{
		"writable by others": {0o666, "agents: {}", []string{"chmod go-w"}},
		"unknown key":        {0o600, "agents: {a: {mod: warn}}", []string{"mod"}},
		"key twice":          {0o600, "agents: {a: {mode: warn, mode: off}}", []string{"already defined"}},
		"two documents":      {0o600, "agents: {}\n---\nagents: {}", []string{"one YAML document"}},
		"no YAML":            {0o600, "{", []string{"yaml"}},
		"every fault": {0o600, "agents: {a: {mode: loud}, b: {human: [fly], tools: {t: swim}}, c: {systems: {s: [jump]}, tools: {'x|y': read}}, d: {tools: {'x|y': read}}}",
			[]string{"agents.a", "loud", "agents.b", "fly", "tools.t", "swim", "systems.s", "jump", "agents.d", "without |"}},
	} {
		_, err := OpenPolicies(writePolicies(t, c.mode, c.text), false, slog.New(slog.DiscardHandler))
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", name, err, want)
			}
		}
	}
	if _, err := OpenPolicies("nowhere", false, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing file is accepted")
	}
}

// If senders are anonymous, a file with mode enforce is refused. A change to mode enforce is
// refused too, and the last good state stays.
func TestEnforceIsAFaultWhereSendersAreAnonymous(t *testing.T) {
	path := writePolicies(t, 0o600, "agents: {a: {mode: enforce}, b*: {mode: enforce}, c: {mode: warn}}")
	_, err := OpenPolicies(path, true, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "agents.a, agents.b*: mode enforce needs a token file") {
		t.Errorf("opened with %v", err)
	}
	path = writePolicies(t, 0o600, "agents: {a: {mode: warn}}")
	var log bytes.Buffer
	p, err := OpenPolicies(path, true, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("agents: {a: {mode: enforce}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.Of("a", time.Now().Add(reload.Recheck)).Mode; got != message.Warn || !strings.Contains(log.String(), "needs a token file") {
		t.Errorf("after the change %s is in force; logged %s", got, log.String())
	}
}
