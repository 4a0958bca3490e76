package demo

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	os.Exit(m.Run())
}

func machineConfig(t *testing.T) machine.Config {
	return machine.Config{DataDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Progress: func(m string) { t.Log(m) }}
}

func play(t *testing.T, m *machine.Machine, s *script) *Result {
	t.Helper()
	result, err := runOn(t.Context(), m, s, func(m string) { t.Log(m) })
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// One machine plays a fleet, and then the same fleet with wrong expectations: the
// second run adds nothing, and reports what differs from the expectations.
func TestFoundIsWhatWasPlanted(t *testing.T) {
	cfg := machineConfig(t)
	cfg.Listen = "127.0.0.1:0"
	m, err := machine.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s := simulated(20, 1000, 7, time.Now())
	first := play(t, m, s)
	if len(first.Faults) > 0 {
		t.Fatalf("found is not what was planted: %q", first.Faults)
	}
	if first.Stored != 1000 || first.Published != s.truth.Lines || first.Duplicates != len(s.truth.Duplicates) ||
		first.DriftAlerts != len(s.truth.Drift) || first.BundlesSealed < s.truth.Sessions {
		t.Errorf("numbers are %+v", first)
	}
	checkKeys(t, first)

	for _, kind := range slices.Concat(violationTypes, []string{schema.BadSignature, schema.CardRevoked}) {
		if first.Planted[kind] == 0 {
			t.Errorf("%s is not planted", kind)
		}
	}
	for _, kind := range sessionFindingTypes {
		if first.PlantedInSessions[kind] == 0 {
			t.Errorf("session %s is not planted", kind)
		}
	}

	kind := schema.ForbiddenAction
	absent := s.truth.Violations[kind][0]
	s.truth.Violations[kind] = append(s.truth.Violations[kind][1:], "tr-never-published")
	s.truth.Drift = s.truth.Drift[:len(s.truth.Drift)-1]
	unanswered := schema.EscalationUnanswered
	unasked := s.truth.SessionFindings[unanswered][0]
	s.truth.SessionFindings[unanswered] = s.truth.SessionFindings[unanswered][1:]
	again := play(t, m, s)
	want := []string{kind + ": planted, but not found: tr-never-published", kind + ": found, but not planted: " + absent,
		"session " + unanswered + ": found, but not planted: " + unasked, "drift alert: found, but not planted"}
	if len(again.Faults) != len(want) {
		t.Errorf("faults are %q", again.Faults)
	}
	for i, fault := range again.Faults {
		if i < len(want) && !strings.HasPrefix(fault, want[i]) {
			t.Errorf("fault %q, want %q", fault, want[i])
		}
	}
	if again.Stored != first.Stored || again.DriftAlerts != first.DriftAlerts || again.BundlesSealed != first.BundlesSealed {
		t.Errorf("the second run changed %+v to %+v", first, again)
	}
}

// Findings that a verdict counts but does not list were not compared, so they are a fault.
func TestUnlistedFindingsAreReported(t *testing.T) {
	for counted, want := range map[int][]string{
		2: nil,
		3: {"session TRACE_GAP: 3 counted, but only 2 listed: the others cannot be compared"},
	} {
		ids := map[string][]string{schema.TraceGap: {"tr-1", "tr-2"}}
		var c comparison
		c.planted(&fleet.Planted{SessionFindings: ids}, &published{}, &found{sessionFindings: ids, sessionCounts: map[string]int{schema.TraceGap: counted}})
		if !slices.Equal(c.faults, want) {
			t.Errorf("%d counted: %q, want %q", counted, c.faults, want)
		}
	}
}

// checkKeys requires that the JSON has the members that scripts rely on.
func checkKeys(t *testing.T, r *Result) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	const want = "bundles_sealed bundles_verified_go bundles_verified_python conflicts dead_lettered drift_alerts duplicates " +
		"elapsed_s findings planted planted_drift planted_session_findings published session_findings stored traces_per_s violations"
	if got := strings.Join(slices.Sorted(maps.Keys(object)), " "); got != want {
		t.Errorf("members are\n%s, want\n%s", got, want)
	}
	for _, kind := range findingTypes {
		if _, named := r.Findings[kind]; !named {
			t.Errorf("finding %s is not named", kind)
		}
	}
}

// Recorded sessions of all agents are played twice on one data directory. The broker
// forgets message ids at once, as it does some minutes after a first run. make corpus puts
// the whole corpus through the stages.
func TestCorpusTwice(t *testing.T) {
	corpus := pipelinetest.ReadCorpus(t).Part(t, 16)
	traces := len(corpus.Records)
	cfg := Config{Machine: machineConfig(t), From: filepath.Join(t.TempDir(), "traces.jsonl"), Cards: filepath.Join(corpus.Dir, "cards.jsonl")}
	cfg.Machine.NATS = forgetful(t)
	var lines []byte
	want := map[string]int{}
	for _, kind := range violationTypes {
		want[kind] = 0
	}
	sessions := map[[2]string]bool{}
	for _, record := range corpus.Records {
		lines = append(append(lines, record.Data...), '\n')
		trace, err := schema.Admit(record.Agent, record.Data)
		if err != nil {
			t.Fatal(err)
		}
		sessions[[2]string{trace.AgentID, trace.Context.SessionID}] = true
		for kind, ids := range corpus.Violations {
			if ids[trace.TraceID] {
				want[kind]++
			}
		}
	}
	if err := os.WriteFile(cfg.From, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() *Result {
		result, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Faults) > 0 {
			t.Errorf("faults: %q", result.Faults)
		}
		if !maps.Equal(result.Violations, want) || result.Findings[schema.CategoryEvasion] != 0 {
			t.Errorf("violations are %v, want %v; findings %v", result.Violations, want, result.Findings)
		}
		if n := len(sessions); result.Stored != traces || result.BundlesSealed != n || result.BundlesVerifiedGo != n || result.BundlesVerifiedPython != n {
			t.Errorf("numbers are %+v, want %d bundles", result, n)
		}
		return result
	}
	first, again := run(), run()
	if first.Duplicates != 0 || again.Duplicates != traces {
		t.Errorf("the first run found %d duplicates, the second %d", first.Duplicates, again.Duplicates)
	}
	if first.DriftAlerts != again.DriftAlerts {
		t.Errorf("the second run raised drift alerts from %d to %d", first.DriftAlerts, again.DriftAlerts)
	}
}

// forgetful returns a broker with the shortest possible duplicate window.
func forgetful(t *testing.T) config.NATS {
	broker := brokertest.New(t)
	client, err := stream.Connect(t.Context(), stream.Config{
		URL: broker.URL(), DuplicateWindow: time.Second, Timeout: time.Second / 2, AllowUnsafe: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.EnsureTopology(t, client)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return config.NATS{URL: broker.URL(), MonitorURL: broker.MonitorURL(), Replicas: 1, AllowUnsafe: true}
}

// A demo takes a new directory, an empty one, and that of an earlier demo. It changes nothing in another one.
func TestDemoRefusesTheDataOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for range 2 {
		if err := claim(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "broker"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim(t.TempDir()); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), Config{Machine: machine.Config{DataDir: other}})
	if !errors.Is(err, ErrOther) {
		t.Errorf("a directory with keys: %v, want ErrOther", err)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 1 {
		t.Errorf("it has %v now, %v", entries, err)
	}
}
