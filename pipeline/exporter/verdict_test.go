package exporter

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

// site returns a rig with a verifier.
func site(t *testing.T) (*pipelinetest.Rig, *Config) {
	t.Helper()
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	judging := verifier.Default()
	judging.Common, judging.ClickHouse, judging.BatchAge = rig.Common(), rig.ClickHouse(), 20*time.Millisecond
	env := pipelinetest.Env(t, "verifier")
	pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &judging, env) })
	cfg := Default()
	cfg.Common, cfg.DataDir, cfg.Every = rig.Common(), t.TempDir(), 20*time.Millisecond
	return rig, &cfg
}

// sealed runs an exporter until a session is sealed, and returns its verdicts.
func sealed(t *testing.T, rig *pipelinetest.Rig, cfg *Config, session string) []*schema.SessionVerdict {
	t.Helper()
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return exporting(ctx, t, rig, cfg, &pipelinetest.Fault{}) })
	pipelinetest.Await(t, "the session marked as sealed", func() bool { return sealedRecord(t, rig, session) })
	stage.Stop(t)
	verdicts, err := rig.Store.SessionVerdicts(t.Context(), "a", session)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// A gap shows in the table, in the alert and in the bundle, which both verifiers accept.
func TestGapIsInBundleRowAndAlert(t *testing.T) {
	rig, cfg := site(t)
	publishGaps(t, rig, "s")
	verdicts := sealed(t, rig, cfg, "s")
	data := onlyBundle(t, cfg)
	checkOneVerdict(t, rig, "s", data)
	if v := verdicts[0]; !v.Verified || v.RecommendedAction != schema.Review || v.Traces.Total != 2 || v.Traces.Verified != 2 || v.Part != 1 || !v.LastPart {
		t.Errorf("verdict is %+v", v)
	}
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{RequireSignature: true})
	if err != nil || !report.Intact {
		t.Errorf("the Go verifier returns %+v (%v)", report, err)
	}
	if out, err := python(t, data); err != nil {
		t.Errorf("verify.py: %v\n%s", err, out)
	}
}

// python unpacks a bundle and runs the verify.py in it.
func python(t *testing.T, bundle []byte) (output []byte, err error) {
	t.Helper()
	dir := t.TempDir()
	unzip, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzip)
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		path := filepath.Join(dir, filepath.FromSlash(entry.Name))
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("python3", "-I", "verify.py")
	command.Dir = filepath.Join(dir, "session_proof")
	return command.CombinedOutput()
}

// The agent's other sessions are queried: a number or a prior trace that exists there is no gap.
func TestOtherSessionsFillGaps(t *testing.T) {
	rig, cfg := site(t)
	rig.Publish(t, numbered("gone-s", "other", 2, ""))
	publishGaps(t, rig, "s")
	if v := sealed(t, rig, cfg, "s"); len(v) != 1 || len(v[0].Findings) != 0 {
		t.Errorf("verdicts are %+v", v)
	}
	if n := len(alertsOn(t, rig, "s")); n != 0 {
		t.Errorf("%d alerts of a session without findings", n)
	}
}

// The agent's counter continues from one session to the next: a number missing between two
// sessions is a gap of the later one.
func TestGapBetweenSessions(t *testing.T) {
	rig, cfg := site(t)
	rig.Publish(t, numbered("tr-1", "other", 1, ""), numbered("tr-2", "other", 2, ""), numbered("tr-4", "s", 4, ""), numbered("tr-5", "s", 5, ""))
	pipelinetest.Await(t, "all four stored", func() bool {
		c, err := rig.Store.Counts(t.Context())
		return err == nil && c.Verdicts == 4
	})
	requestEnd(t, rig, "s")
	v := sealed(t, rig, cfg, "s")
	const want = "no trace has sequence number 3, between the agent's session before and this one"
	if len(v) != 1 || len(v[0].Findings) != 1 || v[0].Findings[0].Type != schema.TraceGap || v[0].Findings[0].TraceID != "tr-4" || v[0].Findings[0].Description != want {
		t.Errorf("verdicts are %+v", v)
	}
}

// crashAfterPlan runs an exporter that crashes after it has written a plan.
func crashAfterPlan(t *testing.T, rig *pipelinetest.Rig, cfg *Config) {
	t.Helper()
	crash(t, rig, cfg, &pipelinetest.Fault{Step: "plan", Applied: true})
}

// The answers from other sessions are fixed with the plan: after a crash the verdict is the same,
// although the missing trace has arrived since.
func TestAnswersComeFromThePlan(t *testing.T) {
	rig, cfg := site(t)
	publishGaps(t, rig, "s")
	crashAfterPlan(t, rig, cfg)
	if onlyBundle(t, cfg) != nil {
		t.Fatal("the bundle exists before the crash")
	}
	rig.Publish(t, numbered("gone-s", "other", 2, ""))
	pipelinetest.Await(t, "what was missing stored", func() bool {
		c, err := rig.Store.Counts(t.Context())
		return err == nil && c.Verdicts == 3
	})
	sealed(t, rig, cfg, "s")
	checkOneVerdict(t, rig, "s", onlyBundle(t, cfg))
}

// A later part uses what the previous part left open, and what the previous part contains.
func TestPartsContinue(t *testing.T) {
	rig, cfg := site(t)
	publishGaps(t, rig, "s")
	sealed(t, rig, cfg, "s")
	rig.Publish(t, numbered("tr-6-s", "s", 6, "tr-1-s"), numbered("tr-4-s", "s", 4, "tr-3-s"))
	requestEnd(t, rig, "s")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return exporting(ctx, t, rig, cfg, &pipelinetest.Fault{}) })
	var verdicts []*schema.SessionVerdict
	pipelinetest.Await(t, "the verdict on the second part", func() (there bool) {
		var err error
		verdicts, err = rig.Store.SessionVerdicts(t.Context(), "a", "s")
		return err == nil && len(verdicts) == 2
	})
	stage.Stop(t)
	v := verdicts[1]
	if want := map[string]int64{schema.TraceGap: 1}; v.Part != 2 || !maps.Equal(v.FindingCounts, want) || v.Findings[0].Description != "no trace has sequence number 5" {
		t.Errorf("the second part's verdict is %+v", v)
	}
}

// An existing file is authoritative: its verdict is recorded, although the traces have been
// judged again since.
func TestVerdictOfTheFileIsRecorded(t *testing.T) {
	rig, cfg := site(t)
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "late", "s", "2026-02-01T00:00:00Z", "search"))
	requestEnd(t, rig, "s")
	crash(t, rig, cfg, &pipelinetest.Fault{Step: "session verdicts"})
	rig.Register(t, pipelinetest.Card("late", "a"))
	pipelinetest.Await(t, "the second verdict on the trace", func() bool {
		c, err := rig.Store.Counts(t.Context())
		return err == nil && c.Verdicts == 1 && c.CardUnknown == 0
	})
	verdicts := sealed(t, rig, cfg, "s")
	inFile, err := seal.SessionVerdict(onlyBundle(t, cfg))
	if err != nil || len(verdicts) != 1 || !reflect.DeepEqual(verdicts[0], inFile) || inFile.Traces.CardUnknown != 1 {
		t.Errorf("the file has %+v (%v), the row %+v", inFile, err, verdicts)
	}
}

// Prior traces that form a cycle, or belong to another agent, are reported; nothing is lost.
func TestCyclicAndForeignPriorTraces(t *testing.T) {
	rig, cfg := site(t)
	rig.Publish(t, pipelinetest.Trace("others", "b", "ac", "b-s", "2026-02-01T00:00:00Z", "search"),
		numbered("tr-1", "s", 1, "tr-3"), numbered("tr-2", "s", 2, "others"), numbered("tr-3", "s", 3, "tr-1"))
	pipelinetest.Await(t, "all traces judged", func() bool {
		c, err := rig.Store.Counts(t.Context())
		return err == nil && c.Verdicts == 4
	})
	requestEnd(t, rig, "s")
	v := sealed(t, rig, cfg, "s")[0]
	var said []string
	for _, f := range v.Findings {
		said = append(said, f.Type+" "+f.TraceID+": "+f.Description)
	}
	want := []string{
		`TRACE_ORDER tr-1: names "tr-3" as prior, a later trace, which leads back to it in a circle`,
		`TRACE_ORDER tr-2: names "others" as prior, a trace of another agent`,
	}
	if !slices.Equal(said, want) || v.Traces.Total != 3 {
		t.Errorf("%d traces, found %q, want %q", v.Traces.Total, said, want)
	}
}
