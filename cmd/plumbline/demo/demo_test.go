package demo

import (
	"encoding/json"
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
	"github.com/plumbline/plumbline/local"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	os.Exit(m.Run())
}

func machine(t *testing.T) local.Config {
	return local.Config{DataDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Progress: func(m string) { t.Log(m) }}
}

func play(t *testing.T, m *local.Machine, s *script) *Result {
	t.Helper()
	result, err := runOn(t.Context(), m, s, func(m string) { t.Log(m) })
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// One machine plays a fleet, and then the same again with a false truth: the
// second run adds nothing, and names what is not as planted.
func TestFoundIsWhatWasPlanted(t *testing.T) {
	cfg := machine(t)
	cfg.Listen = "127.0.0.1:0"
	m, err := local.Start(t.Context(), cfg)
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

// checkKeys holds the JSON to the members that scripts rely on.
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

// The recorded corpus, twice on one data directory, with a broker that forgets
// message ids at once, as it does some minutes after a first run.
func TestCorpusTwice(t *testing.T) {
	corpus := pipelinetest.CorpusDir(t)
	cfg := Config{
		Machine: machine(t),
		From:    filepath.Join(corpus, "traces.jsonl.gz"), Cards: filepath.Join(corpus, "cards.jsonl"),
	}
	cfg.Machine.NATS = forgetful(t)
	first := playCorpus(t, cfg)
	again := playCorpus(t, cfg)
	if first.Duplicates != 0 || again.Duplicates != 8039 {
		t.Errorf("%d and %d duplicates", first.Duplicates, again.Duplicates)
	}
	if first.DriftAlerts != again.DriftAlerts {
		t.Errorf("the second run raised drift alerts from %d to %d", first.DriftAlerts, again.DriftAlerts)
	}
}

// forgetful is a broker whose duplicate window is as short as it can be.
func forgetful(t *testing.T) run.NATS {
	broker := brokertest.New(t)
	client, err := stream.Connect(t.Context(), stream.Config{
		URL: broker.URL(), DuplicateWindow: time.Second, Timeout: time.Second / 2, AllowUnsafe: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return run.NATS{URL: broker.URL(), MonitorURL: broker.MonitorURL(), Replicas: 1, AllowUnsafe: true}
}

func playCorpus(t *testing.T, cfg Config) *Result {
	t.Helper()
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Faults) > 0 {
		t.Errorf("faults: %q", result.Faults)
	}
	want := map[string]int{schema.ForbiddenAction: 61, schema.MissedEscalation: 48, schema.UndeclaredValue: 21,
		schema.UnboundedAction: 11, schema.CardExpired: 0, schema.CardMismatch: 0}
	if !maps.Equal(result.Violations, want) || result.Findings[schema.CategoryEvasion] != 0 {
		t.Errorf("violations are %v, findings %v", result.Violations, result.Findings)
	}
	if result.Stored != 8039 || result.BundlesSealed != 550 || result.BundlesVerifiedGo != 550 || result.BundlesVerifiedPython != 550 {
		t.Errorf("numbers are %+v", result)
	}
	return result
}
