package verifier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func TestRulesReportEveryFault(t *testing.T) {
	for _, c := range []struct {
		similarity  float64
		methodology string
		want        string
	}{
		{0.50, "", "[]"}, {0.50, "as published", "[]"}, {0.4, "calibrated", "[]"}, {0.4, "", "[methodology]"},
		{-0.1, "calibrated", "[behavioral_similarity]"}, {1.1, "", "[behavioral_similarity methodology]"},
	} {
		cfg, keys := Default(), []string{}
		cfg.BehavioralSimilarity, cfg.Methodology = c.similarity, c.methodology
		for _, fault := range cfg.Validate() {
			keys = append(keys, fault.Key)
		}
		if got := fmt.Sprint(keys); got != c.want {
			t.Errorf("%v with methodology %q: faults of %s, want %s", c.similarity, c.methodology, got, c.want)
		}
	}
}

// A file that cannot be read is a fault of the configuration, reported with the others.
func TestUnreadableFilesAreFaults(t *testing.T) {
	cfg := Default()
	if faults := cfg.FileFaults(); len(faults) != 0 {
		t.Errorf("the error names no file: %v", faults)
	}
	cfg.MessagePoliciesFile, cfg.NATS.KeyFile = "none", "none"
	faults := cfg.FileFaults()
	if len(faults) != 2 || faults[0].Key != "nats_key_file" || faults[1].Key != "message_policies_file" {
		t.Error(faults)
	}
}

// Traces are judged by the configured threshold. Its methodology is in the row and in the
// published alert, and a replay with it produces the same verdicts.
func TestBehavioralSimilarityIsSet(t *testing.T) {
	const methodology = "calibrated on a thousand traces of ours"
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	unlike := pipelinetest.Trace("tr-unlike", "a", "ac", "s", "2026-02-01T00:00:00Z", "look")
	rig.Publish(t,
		pipelinetest.Trace("tr-pay", "a", "ac", "s", "2026-02-01T00:00:01Z", "pay"),
		pipelinetest.Record("a", bytes.Replace(unlike.Data, []byte(`"bounded"`), []byte(`"escalation_trigger"`), 1)))
	cfg := Default()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	cfg.BehavioralSimilarity, cfg.Methodology = 0.9, methodology
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &cfg, pipelinetest.Env(t, "verifier")) })
	pipelinetest.Await(t, "the verifier to ack everything", func() bool { return atRest(t, rig) })
	stage.Stop(t)

	result, err := rig.Store.Query(t.Context(), "SELECT methodology, engine_version, has(warning_types, 'low_behavioral_similarity') FROM current_verdicts WHERE trace_id = 'tr-unlike'")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	engine := aap.EngineVersion + " (behavioral_similarity 0.9)"
	for row, err := range result.Rows {
		if rows++; err != nil || fmt.Sprint(row) != fmt.Sprintf("[%s %s 1]", methodology, engine) {
			t.Errorf("the verdict is stored as %v, error %v", row, err)
		}
	}
	alert := firstAlert(t, rig)
	if rows != 1 || alert.Metadata.Methodology != methodology || alert.Metadata.EngineVersion != engine {
		t.Errorf("%d rows; the alert: %+v", rows, alert)
	}
	replay := replayOf(t, rig)
	replay.Rules = cfg.Rules
	if got := replayed(t, rig, replay); got.Unchanged != 2 || got.Written() != 0 {
		t.Errorf("replay under the same threshold: %+v", got)
	}
}

// firstAlert reads the first message of stream ALERTS.
func firstAlert(t *testing.T, rig *pipelinetest.Rig) (v schema.Verdict) {
	t.Helper()
	if err := json.Unmarshal(rig.Messages(t, stream.Alerts, 1)[0].Data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
