package exporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// sealLogged runs an exporter with a log until a session is sealed and the ledger's files have
// the log's head of that size.
func sealLogged(t *testing.T, rig *pipelinetest.Rig, cfg *Config, session string, size int64) {
	t.Helper()
	env := pipelinetest.Env(t, "exporter")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
	publishMerkle(t, rig, session)
	pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, session) })
	pipelinetest.Await(t, fmt.Sprintf("a head of %d in the ledger", size), func() bool {
		found := false
		err := opledger.Last(cfg.ledgerDir(), func(p *opledger.Placed) bool {
			head := headOf(p)
			found = found || head != nil && head.Size == size && head.Origin == cfg.logOrigin()
			return found
		})
		return err == nil && found
	})
	stage.Stop(t)
}

// place replaces the log by a copy of a directory. With no directory it removes the log.
func place(t *testing.T, cfg *Config, from string) {
	t.Helper()
	err := os.RemoveAll(cfg.logDir())
	if err == nil && from != "" {
		err = os.CopyFS(cfg.logDir(), os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An exporter does not start on a log that was rolled back, removed or replaced: the heads in
// bucket seals and in the ledger each show it.
func TestLogThatWasRolledBackIsRefused(t *testing.T) {
	rig, cfg := site(t)
	merkleCard(t, rig)
	cfg.ClickHouse, cfg.Anchors.TransparencyLog = rig.ClickHouse(), true
	early, whole := t.TempDir(), t.TempDir()
	for i, dir := range []string{early, whole} {
		sealLogged(t, rig, cfg, fmt.Sprintf("s-%d", i), int64(i+1))
		if err := os.CopyFS(dir, os.DirFS(cfg.logDir())); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Serve(ctx, cfg, pipelinetest.Env(t, "exporter"))
		if !errors.Is(err, tlog.ErrNotKept) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "log_origin") {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	bucket, err := rig.Client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{"in the bucket and the ledger", "in the ledger alone"} {
		place(t, cfg, early)
		refused("rolled back, kept "+kept, "it had 2 leaves and has 1")
		place(t, cfg, "")
		refused("removed, kept "+kept, "there is no log here, and it had 2 leaves")
		if entries, err := os.ReadDir(cfg.logDir()); err != nil || len(entries) > 1 { // the lock file
			t.Errorf("a log was created: %v, %v", entries, err)
		}
		_, revision, err := bucket.Get(t.Context(), seal.LogKey)
		if err == nil {
			err = bucket.Delete(t.Context(), seal.LogKey, revision)
		}
		if err != nil && kept == "in the bucket and the ledger" {
			t.Fatal(err)
		}
	}
	place(t, cfg, whole)
	sealLogged(t, rig, cfg, "s-2", 3)
	ledger := cfg.ledgerDir() + ".away"
	if err := os.Rename(cfg.ledgerDir(), ledger); err != nil {
		t.Fatal(err)
	}
	place(t, cfg, early)
	refused("rolled back, kept in the bucket alone", "it had 3 leaves and has 1")
	if err := errors.Join(os.RemoveAll(cfg.ledgerDir()), os.Rename(ledger, cfg.ledgerDir())); err != nil {
		t.Fatal(err)
	}
	place(t, cfg, "")
	cfg.Anchors.LogOrigin = "another.example/log"
	sealLogged(t, rig, cfg, "s-3", 1) // a log with another name
	cfg.Anchors.LogOrigin = ""
	place(t, cfg, early)
	refused("rolled back, and another log was kept since", "it had 3 leaves and has 1")
}
