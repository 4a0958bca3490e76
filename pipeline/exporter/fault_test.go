package exporter

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

type faultyRows struct {
	*store.Store
	f *pipelinetest.Fault
}

func (r faultyRows) InsertBundles(ctx context.Context, rows []store.Bundle) error {
	return r.f.Around("bundles", func() error { return r.Store.InsertBundles(ctx, rows) })
}

func (r faultyRows) InsertSessions(ctx context.Context, rows []store.Session) error {
	return r.f.Around("sessions", func() error { return r.Store.InsertSessions(ctx, rows) })
}

func (r faultyRows) InsertSealRuns(ctx context.Context, rows []store.SealRun) error {
	return r.f.Around("seal runs", func() error { return r.Store.InsertSealRuns(ctx, rows) })
}

type faultyBucket struct {
	*stream.Bucket
	f *pipelinetest.Fault
}

func (b faultyBucket) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = b.f.Around("plan", func() (err error) { revision, err = b.Bucket.Create(ctx, key, value); return err })
	return revision, err
}

func (b faultyBucket) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	err = b.f.Around("mark as sealed", func() (err error) { revision, err = b.Bucket.Update(ctx, key, value, last); return err })
	return revision, err
}

type faultyBroker struct {
	*stream.Client
	f *pipelinetest.Fault
}

func (b faultyBroker) AppendLedger(ctx context.Context, events ...stream.LedgerEvent) error {
	return b.f.Around("ledger", func() error { return b.Client.AppendLedger(ctx, events...) })
}

// exporting runs an exporter under a fault until ctx ends or the fault crashes it.
func exporting(ctx context.Context, t *testing.T, rig *pipelinetest.Rig, cfg *Config, f *pipelinetest.Fault) error {
	env := pipelinetest.Env(t, "exporter")
	key, err := signingKey(cfg.keyFile(), env)
	if err != nil {
		return err
	}
	e, source, err := open(ctx, cfg, env, rig.Client)
	if err != nil {
		return err
	}
	defer source.Close()
	bucket, err := rig.Client.Bucket(ctx, stream.Seals)
	if err != nil {
		return err
	}
	e.key, e.keyID = key, aivs.KeyID(key.Public().(ed25519.PublicKey))
	e.rows, e.seals, e.broker = faultyRows{rig.Store, f}, faultyBucket{bucket, f}, faultyBroker{rig.Client, f}
	if f.Crash != nil {
		e.env.DrainBudget = time.Nanosecond
	}
	return e.run(ctx)
}

// Every external step of sealing fails once, not applied or applied, and the
// exporter goes on or dies of it: in the end there is one bundle, recorded once.
func TestSealingSurvivesEveryStep(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	judging := verifier.Default()
	judging.Common, judging.ClickHouse.DSN = rig.Common(), rig.DSN
	judge := pipelinetest.Env(t, "verifier")
	pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &judging, judge) })
	n := 0
	for _, step := range []string{"plan", "bundles", "seal runs", "sessions", "ledger", "mark as sealed"} {
		for _, applied := range []bool{false, true} {
			for _, crash := range []bool{false, true} {
				n++
				session := fmt.Sprintf("s-%d", n)
				t.Run(fmt.Sprintf("%s, applied=%v, crash=%v", step, applied, crash), func(t *testing.T) {
					survive(t, rig, session, &pipelinetest.Fault{Step: step, Applied: applied}, crash)
				})
			}
		}
	}
}

func survive(t *testing.T, rig *pipelinetest.Rig, session string, f *pipelinetest.Fault, crash bool) {
	cfg := Default()
	cfg.Common, cfg.DataDir, cfg.Every = rig.Common(), t.TempDir(), 20*time.Millisecond
	rig.Publish(t, pipelinetest.Trace("tr-"+session, "a", "ac", session, "2026-02-01T00:00:00Z", "search"))
	state, err := rig.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	end := stream.EndRequest{AgentID: "a", SessionID: session, ThroughSequence: state.LastSequence}
	if err := rig.Client.RequestEnd(t.Context(), subject.Partition("a"), end); err != nil {
		t.Fatal(err)
	}
	if crash {
		ctx, die := context.WithCancel(t.Context())
		f.Crash = die
		if err := exporting(ctx, t, rig, &cfg, f); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, pipelinetest.ErrInjected) {
			t.Fatal(err)
		}
	}
	f.Crash = nil // met by now: what follows is the next process
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return exporting(ctx, t, rig, &cfg, f) })
	pipelinetest.Await(t, "the session marked as sealed", func() bool { return sealedRecord(t, rig, session) })
	stage.Stop(t)
	if !f.Met() {
		t.Fatal("the fault was never met")
	}
	checkOneBundle(t, rig, &cfg, session)
}

func sealedRecord(t *testing.T, rig *pipelinetest.Rig, session string) bool {
	bucket, err := rig.Client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := bucket.Get(t.Context(), seal.Key("a", session))
	if err != nil {
		return false
	}
	record, err := seal.Decode(value)
	return err == nil && record.State == seal.Sealed
}

// checkOneBundle demands one file, one row for it, and one part.
func checkOneBundle(t *testing.T, rig *pipelinetest.Rig, cfg *Config, session string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cfg.bundleDir(), "*", "*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, error %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := rig.Store.Bundles(t.Context(), "a", session)
	if err != nil || len(bundles) != 1 {
		t.Fatalf("%d bundles, error %v", len(bundles), err)
	}
	if bundles[0].SHA256 != schema.DigestOf(data) || bundles[0].Part != 1 {
		t.Errorf("row %+v is not about the file", bundles[0])
	}
}
