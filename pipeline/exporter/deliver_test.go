package exporter

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/pipeline/destination/s3/s3test"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// sealedTexts returns the files to be copied, by the names of their copies.
func sealedTexts(t *testing.T, cfg *Config) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for file, err := range sealedFiles(cfg.bundleDir()) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(cfg.bundleDir(), file))
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(file)] = string(text)
	}
	return texts
}

// stored returns the objects of an object store with one of the names.
func stored(t *testing.T, rig *pipelinetest.Rig, store string, names map[string]string) map[string]string {
	t.Helper()
	objects, err := rig.Client.Objects(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for name := range names {
		text, err := objects.Read(t.Context(), name)
		if err == nil {
			found[name] = string(text)
		} else if !errors.Is(err, stream.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return found
}

// serve runs an exporter until it is stopped.
func serve(t *testing.T, cfg Config) (*service.Env, *pipelinetest.Stage) {
	env := pipelinetest.Env(t, "exporter")
	return env, pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &cfg, env) })
}

// Files next to a bundle are copied with it. A new destination receives everything that was
// sealed before, with or without a destination at the time.
func TestCopiesReachTheObjectStore(t *testing.T) {
	authority := anchortest.New(t)
	server := httptest.NewServer(authority)
	t.Cleanup(server.Close)
	rig, cfg := site(t)
	cfg.ClickHouse = rig.ClickHouse()
	cfg.Anchors = Anchors{TSAURL: server.URL, TSACertFile: authority.Roots, TransparencyLog: true}
	for i, store := range []string{"", "one", "", "one", "two"} {
		cfg.Copies.ObjectStore = store
		_, stage := serve(t, *cfg)
		session := "s" + string(rune('0'+i))
		publishGaps(t, rig, session)
		pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, session) })
		pipelinetest.Await(t, "its time stamp", func() bool { return len(sealedTexts(t, cfg)) == 3*(i+1) })
		if store != "" {
			pipelinetest.Await(t, "the copies", func() bool {
				texts := sealedTexts(t, cfg)
				return maps.Equal(stored(t, rig, store, texts), texts)
			})
		}
		stage.Stop(t)
	}
}

// An existing object with the name is left unchanged, and does not block the copies of other
// bundles.
func TestCopyToATakenNameIsRefused(t *testing.T) {
	rig, cfg := site(t)
	cfg.ClickHouse = rig.ClickHouse()
	_, stage := serve(t, *cfg)
	publishGaps(t, rig, "first")
	pipelinetest.Await(t, "the first session", func() bool { return sealedRecord(t, rig, "first") })
	stage.Stop(t)
	name := slices.Collect(maps.Keys(sealedTexts(t, cfg)))[0]
	objects, err := rig.Client.Objects(t.Context(), "bundles")
	if err == nil {
		err = objects.Deliver(t.Context(), name, schema.DigestOf([]byte("forged")).String(), strings.NewReader("forged"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Copies.ObjectStore = "bundles"
	env, _ := serve(t, *cfg)
	publishGaps(t, rig, "second")
	texts := func() map[string]string { return sealedTexts(t, cfg) }
	pipelinetest.Await(t, "the second's copy", func() bool { return len(texts()) == 2 && len(stored(t, rig, "bundles", texts())) == 2 })
	if got := stored(t, rig, "bundles", texts())[name]; got != "forged" {
		t.Errorf("the object was overwritten: %.40q", got)
	}
	pipelinetest.Await(t, "one that waits", func() bool {
		return pipelinetest.Metric(t, env, "plumbline_exporter_copies_waiting", "nats") == 1 && pipelinetest.Metric(t, env, "plumbline_exporter_delivery_failures_total", "nats") >= 1
	})
}

// While S3 is unavailable sessions are sealed, and no copy is lost, also over a restart of the
// exporter. Once it is available it receives everything.
func TestSealingDoesNotWaitForS3(t *testing.T) {
	store := s3test.Stopped(t)
	rig, cfg := site(t)
	cfg.ClickHouse = rig.ClickHouse()
	cfg.Copies.S3, cfg.Anchors.TransparencyLog = store.Config(), true
	for _, session := range []string{"first", "second"} {
		env, stage := serve(t, *cfg)
		publishGaps(t, rig, session)
		pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, session) })
		if waiting, want := pipelinetest.Metric(t, env, "plumbline_exporter_copies_waiting", "s3"), float64(len(sealedTexts(t, cfg))); waiting != want {
			t.Errorf("%v wait, want %v", waiting, want)
		}
		stage.Stop(t)
	}
	env, _ := serve(t, *cfg)
	store.Start()
	pipelinetest.Await(t, "the copies", func() bool { return pipelinetest.Metric(t, env, "plumbline_exporter_delivered_total", "s3") == 4 })
	if texts := sealedTexts(t, cfg); !maps.Equal(store.Objects(), texts) || len(texts) != 4 {
		t.Errorf("the bucket has %d objects, the directory %d files", len(store.Objects()), len(texts))
	}
	for name, text := range sealedTexts(t, cfg) {
		copies, err := rig.Store.BundleCopies(t.Context(), schema.DigestOf([]byte(text)))
		if err != nil || len(copies) != 1 || copies[0].Path != name || copies[0].Destination != cfg.Copies.S3.Endpoint+"/bundles" {
			t.Errorf("recorded: %+v, %v", copies, err)
		}
	}
	pipelinetest.Await(t, "the end of waiting", func() bool { return pipelinetest.Metric(t, env, "plumbline_exporter_copies_waiting", "s3") == 0 })
}
