package accounts_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// A user with the rights of an earlier version, which did not publish alerts about loops, may not publish one. Drift stops at the first loop,
// and readiness names the subject, the user, and the command that writes the new rights. Once the server has them, drift continues, and
// publishes the alert once.
func TestDriftWithOlderRightsWaitsForNewOnes(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, accounts.Config{Dir: dir})
	s.setFindings(dir, false)
	rig := pipelinetest.NewOn(t, s.broker(stream.RoleOperator))
	cfg, broker := drift.Default(), s.broker(stream.RoleDrift)
	cfg.Common, cfg.ClickHouse, cfg.Lateness = rig.Common(), rig.ClickHouse(), time.Millisecond
	cfg.NATS.NKeySeedFile, cfg.NATS.InboxPrefix = broker.NKeySeedFile, broker.InboxPrefix
	env := pipelinetest.Env(t, "drift")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return drift.Serve(ctx, &cfg, env) })
	up := s.connect("up")
	for i := range 4 { // the last one makes the loop due
		record := pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", "ac", "s", fmt.Sprintf("2026-02-01T00:00:%02dZ", i), "pay")
		record.Data = bytes.Replace(record.Data, []byte(`"pay",`), []byte(`"pay","target":{"type":"account","identifier":"1"},`), 1)
		if err := up.Publish(subject.Trace("a"), record.Data); err != nil {
			t.Fatal(err)
		}
	}
	down := ""
	pipelinetest.Await(t, "the refused subject", func() bool {
		down = fmt.Sprint(env.Health.Readiness().Down)
		return strings.Contains(down, `Permissions Violation for Publish to "`+subject.Alert(subject.AlertFinding, "a"))
	})
	for _, part := range []string{s.users["drift"].Login, "plumbline nats-config"} {
		if !strings.Contains(down, part) {
			t.Errorf("%q is missing in: %s", part, down)
		}
	}
	s.setFindings(dir, true)
	published := func() uint64 {
		state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
		if err != nil {
			t.Fatal(err)
		}
		return state.LastSequence
	}
	pipelinetest.Await(t, "the loop", func() bool { return published() > 0 })
	stage.Stop(t)
	if stored := rig.Number(t, "SELECT count() FROM visible_loop_alerts"); published() != 1 || stored != 1 {
		t.Errorf("%d loops are stored, %d published", stored, published())
	}
}

// setFindings gives drift the right to publish findings, or takes it away, and reloads the server.
func (s *site) setFindings(dir string, may bool) {
	s.t.Helper()
	const right, older = `"aap.alert.drift.*"` + "\n            " + `"aap.alert.finding.*"` + "\n            " + `"ledger.BOOT"`, `"aap.alert.drift.*"` + "\n            " + `"ledger.BOOT"`
	file := filepath.Join(dir, accounts.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	from, to := right, older
	if may {
		from, to = older, right
	}
	if strings.Count(string(text), from) != 1 {
		s.t.Fatalf("%s does not have %q once:\n%s", accounts.FileName, from, text)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := s.server.Reload(); err != nil {
		s.t.Fatal(err)
	}
}
