package exporter

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
	"github.com/plumbline/plumbline/schema"
)

// deployed starts the stage (see pipelinetest.Deploy).
func deployed(t *testing.T, cfg Config) (stop context.CancelFunc, ended chan error) {
	t.Helper()
	return pipelinetest.Deploy(t, "exporter", func(ctx context.Context, env *service.Env) error { return Serve(ctx, &cfg, env) })
}

// sealSession publishes a trace of a session and waits until it is in a bundle.
func sealSession(t *testing.T, rig *pipelinetest.Rig, session string) {
	t.Helper()
	rig.Publish(t, numbered("tr-"+session, session, 1, ""))
	requestEnd(t, rig, session)
	pipelinetest.Await(t, "the bundle of "+session, func() bool { return sealedRecord(t, rig, session) })
}

// wantFiles requires a number of bundles and of ledger files in a data directory.
func wantFiles(t *testing.T, cfg *Config, bundles, ledgers int) {
	t.Helper()
	for pattern, want := range map[string]int{
		filepath.Join(cfg.bundleDir(), "*", "*.tar.gz"): bundles,
		filepath.Join(cfg.ledgerDir(), "*.jsonl"):       ledgers,
	} {
		if found, err := filepath.Glob(pattern); err != nil || len(found) != want {
			t.Errorf("%s: %q (%v), want %d", pattern, found, err, want)
		}
	}
}

// An exporter in another directory is refused while one runs, with an error that names that one: there
// is one chain of bundles and one ledger. That holds for the data directory alone, too: the transparency
// log is there, and when the keeper is gone, another one must find it.
func TestSecondExporterIsRefused(t *testing.T) {
	rig, first := site(t)
	first.ClickHouse = rig.ClickHouse()
	second := *first
	second.DataDir = filepath.Join(t.TempDir(), "data")
	stop, ended := deployed(t, *first)
	sealSession(t, rig, "s")
	pipelinetest.NamesThisProcess(t, Serve(t.Context(), &second, pipelinetest.Env(t, "exporter")), ownership.ErrElsewhere)
	untouched(t, second.DataDir)
	second.KeyFile, second.BundleDir = first.keyFile(), first.bundleDir()
	pipelinetest.NamesThisProcess(t, Serve(t.Context(), &second, pipelinetest.Env(t, "exporter")), ownership.ErrElsewhere)
	untouched(t, second.DataDir)
	sealSession(t, rig, "u")
	pipelinetest.Await(t, "the ledger", func() bool {
		_, err := os.Stat(filepath.Join(first.ledgerDir(), "ledger-000001.jsonl"))
		return err == nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantFiles(t, first, 2, 1)
}

// untouched requires that a directory was not created.
func untouched(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, want that it does not exist", dir, err)
	}
}

// An exporter without a key file is refused where bundles were signed before. The error names the
// key and the remedy. With a key that somebody created it starts, and so it does where nothing
// was signed yet.
func TestDirectoryWithoutTheKeyIsRefused(t *testing.T) {
	rig, first := site(t)
	first.ClickHouse = rig.ClickHouse()
	second := *first
	second.DataDir = filepath.Join(t.TempDir(), "data")
	elsewhere := second
	elsewhere.DataDir = t.TempDir()
	stopped(t, elsewhere, nil)
	stopped(t, *first, func() { sealSession(t, rig, "s") })
	ring, err := keystore.ReadList(filepath.Join(first.DataDir, "keys", keystore.ListName))
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), &second, pipelinetest.Env(t, "exporter"))
	for _, text := range []string{"with key " + ring.Keys()[0].KeyID, "plumbline keys new session --file " + second.keyFile()} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("ended with %v, want %q", err, text)
		}
	}
	untouched(t, second.DataDir)
	slot := keystore.Slot{Path: second.keyFile(), Purpose: keyring.Session}
	if _, err := slot.New(t.Context(), keystore.Period{From: time.Now()}, time.Now()); err != nil {
		t.Fatal(err)
	}
	stopped(t, second, func() { sealSession(t, rig, "u") })
	wantFiles(t, &second, 1, 1)
}

// stopped runs the stage as in a deployment until do has returned.
func stopped(t *testing.T, cfg Config, do func()) {
	t.Helper()
	stop, ended := deployed(t, cfg)
	if do != nil {
		do()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A keeper that was disconnected while another one took over ends by itself. Its session is sealed once,
// by either of them.
func TestExporterThatLostTheLeaseEnds(t *testing.T) {
	rig, first := site(t)
	first.ClickHouse = rig.ClickHouse()
	second := *first
	wire := brokertest.NewWire(t, rig.Broker.URL())
	first.NATS.URL = wire.URL()
	_, before := deployed(t, *first)
	wire.Cut()
	env := pipelinetest.Env(t, "exporter")
	now := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &second, env) })
	pipelinetest.Await(t, "the next keeper", func() bool { // waits for the lock of the one that is alive
		return strings.Contains(env.Health.Reported().Down["keeper"], "still uses the data directory")
	})
	rig.Publish(t, numbered("tr-1", "s", 1, ""))
	wire.Mend()
	requestEnd(t, rig, "s")
	pipelinetest.NamesThisProcess(t, <-before, stream.ErrLeaseLost)
	pipelinetest.Await(t, "the bundle", func() bool { return sealedRecord(t, rig, "s") })
	now.Stop(t)
	if n := len(rows(t, rig, "s")); n != 1 {
		t.Errorf("%d bundles of the session are recorded", n)
	}
	if onlyBundle(t, first) == nil {
		t.Error("there is no bundle")
	}
}

// rows returns the recorded bundles of a session.
func rows(t *testing.T, rig *pipelinetest.Rig, session string) []string {
	t.Helper()
	bundles, err := rig.Store.Bundles(t.Context(), "a", session)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i := range bundles {
		paths = append(paths, bundles[i].Path)
	}
	return paths
}

// An exporter that loses the lease before it places a file places none. One that loses it after
// that records nothing.
func TestWithoutTheLeaseNothingIsSealed(t *testing.T) {
	t.Run("lost before the file", func(t *testing.T) {
		cfg := sealWithout(t, func(*Config) bool { return true })
		if onlyBundle(t, cfg) != nil {
			t.Error("the file is placed")
		}
	})
	t.Run("lost after the file", func(t *testing.T) {
		cfg := sealWithout(t, func(cfg *Config) bool { return onlyBundle(t, cfg) != nil })
		if onlyBundle(t, cfg) == nil {
			t.Error("the file is not placed")
		}
	})
}

// An exporter that has lost the lease neither appends to the transparency log nor changes its head.
func TestWithoutTheLeaseNoHeadIsKept(t *testing.T) {
	cfg := Default()
	cfg.DataDir = t.TempDir()
	k := &keeper{cfg: &cfg}
	k.confirm = func(context.Context) error { return service.Permanent(errors.New("the lease is another's")) }
	var err error
	key := tlog.LogKey{Origin: "log.example", Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	if k.anchors.log, err = tlog.OpenLog(cfg.logDir(), key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.anchors.close() })
	if _, err := k.keep(t.Context(), []placedBundle{{File: "s.tar.gz", Session: "s", SHA256: schema.DigestOf(nil).String()}}); err == nil || k.anchors.log.Head().Size > 0 {
		t.Errorf("%v, and the log has %d leaves", err, k.anchors.log.Head().Size)
	}
	leaf, err := anchor.Leaf("s", schema.DigestOf(nil).String())
	if err == nil {
		_, err = k.anchors.log.Append(leaf)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := k.keepHead(t.Context()); err == nil { // it has no bucket: a write would panic
		t.Error("the head is kept")
	}
}

// sealWithout runs an exporter that seals a session and has lost its lease as soon as lost
// returns true. It requires that the exporter ends and records nothing.
func sealWithout(t *testing.T, lost func(*Config) bool) *Config {
	t.Helper()
	rig, cfg := site(t)
	errLost := errors.New("the lease is another's")
	var published atomic.Bool
	ended := make(chan error, 1)
	go func() {
		confirm := func(context.Context) error {
			if published.Load() && lost(cfg) {
				return service.Permanent(errLost)
			}
			return nil
		}
		ended <- exportingUnder(t.Context(), t, confirm, time.Now, rig, cfg, &pipelinetest.Fault{})
	}()
	published.Store(true)
	rig.Publish(t, numbered("tr-1", "s", 1, ""))
	requestEnd(t, rig, "s")
	if err := <-ended; !errors.Is(err, errLost) {
		t.Errorf("ended with %v", err)
	}
	if found := rows(t, rig, "s"); len(found) > 0 {
		t.Errorf("recorded: %q", found)
	}
	if sealedRecord(t, rig, "s") {
		t.Error("the session is marked as sealed")
	}
	return cfg
}
