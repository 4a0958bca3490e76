package reconcile_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// site is a pipeline that has finished all work.
type site struct {
	*pipelinetest.Rig
	dir    string // data directory of the exporter
	kept   string // a copy from before any damage
	stages []*pipelinetest.Stage
	now    time.Time // for the comparison; zero: the present

	changed map[string]bool // tables that exec has changed since the last restore

	anchors     exporter.Anchors    // settings of the exporter
	authorities []*x509.Certificate // authorities whose stamps the comparison trusts
}

// newSite starts a verifier, drift, and an exporter that keeps a transparency log.
func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{Rig: pipelinetest.New(t), dir: t.TempDir()}
	s.run(t)
	return s
}

// run starts the stages.
func (s *site) run(t testing.TB) {
	t.Helper()
	judge := verifier.Default()
	judge.Common, judge.ClickHouse = s.Common(), s.ClickHouse()
	s.start(t, func(ctx context.Context) error { return verifier.Serve(ctx, &judge, pipelinetest.Env(t, "verifier")) })
	s.export(t, true)
	watch := drift.Default()
	watch.Common, watch.ClickHouse = s.Common(), s.ClickHouse()
	s.start(t, func(ctx context.Context) error { return drift.Serve(ctx, &watch, pipelinetest.Env(t, "drift")) })
}

func (s *site) start(t testing.TB, serve func(context.Context) error) {
	s.stages = append(s.stages, pipelinetest.Go(t, serve))
}

// export starts an exporter.
func (s *site) export(t testing.TB, log bool) {
	cfg := exporter.Default()
	cfg.Common, cfg.ClickHouse = s.Common(), s.ClickHouse()
	cfg.DataDir, cfg.Every, cfg.Anchors = s.dir, 50*time.Millisecond, s.anchors
	cfg.Anchors.TransparencyLog = log
	s.start(t, func(ctx context.Context) error { return exporter.Serve(ctx, &cfg, pipelinetest.Env(t, "exporter")) })
}

// sealedTraces is the number of traces in sessions x and y of agent a, three each.
const sealedTraces = 6

// filled returns a site with two sealed sessions, the first in two parts, one open session, a
// trace that was published twice, and a dead letter.
func filled(t testing.TB) *site {
	t.Helper()
	s := newSite(t)
	s.fill(t)
	return s
}

// fill seals the sessions, and waits until the site has finished all work.
func (s *site) fill(t testing.TB) {
	t.Helper()
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.Publish(t, trace("x-1", "x", 1), trace("x-2", "x", 2), trace("open-1", "open", 3))
	s.end(t, "x", 1)
	s.Publish(t, trace("x-3", "x", 4), trace("y-1", "y", 5), trace("y-2", "y", 6), trace("y-3", "y", 7))
	s.end(t, "x", 2)
	s.end(t, "y", 3)
	again := trace("y-1", "y", 5)
	again.Digest = schema.DigestOf(again.Digest[:]) // as after the duplicate window
	s.Publish(t, again, pipelinetest.Record("a", []byte(`{"trace_id":"broken"}`)))
	s.rest(t)
}

func trace(id, session string, second int) stream.Record {
	return pipelinetest.Trace(id, "a", "ac", session, fmt.Sprintf("2026-11-01T00:00:%02dZ", second), "search")
}

// end requests that a session is sealed, and waits until it has the given number of bundles.
func (s *site) end(t testing.TB, session string, bundles uint64) {
	t.Helper()
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	end := wire.EndRequest{AgentID: "a", SessionID: session, ThroughSequence: state.LastSequence, Stream: state.Created.UnixNano()}
	if err := s.Client.RequestEnd(t.Context(), subject.Partition("a"), end); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "the bundle of "+session, func() bool {
		counts, err := s.Store.Counts(t.Context())
		return err == nil && counts.Bundles == bundles
	})
}

// rest waits until all traces are judged, measured and chained, and stops the stages.
func (s *site) rest(t testing.TB) {
	t.Helper()
	s.awaitAcks(t, stream.DriftConsumer(subject.Partition("a")))
	s.restWithoutDrift(t)
}

// awaitAcks waits until a consumer has acked every trace.
func (s *site) awaitAcks(t testing.TB, consumer string) {
	t.Helper()
	traces, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, consumer+" to ack every trace", func() bool {
		progress, err := s.Client.ConsumerProgress(t.Context(), stream.Traces, consumer)
		return err == nil && progress.AckFloor == traces.LastSequence
	})
}

func (s *site) restWithoutDrift(t testing.TB) {
	t.Helper()
	s.awaitAcks(t, stream.VerifierConsumer)
	pipelinetest.Await(t, "the dead letters stored", func() bool {
		state, err := s.Client.StreamState(t.Context(), stream.DeadLetters)
		progress, err2 := s.Client.ConsumerProgress(t.Context(), stream.DeadLetters, stream.DeadLetterConsumer)
		return errors.Join(err, err2) == nil && progress.AckFloor == state.LastSequence
	})
	pipelinetest.Await(t, "the ledger to contain every event", func() bool {
		state, err := s.Client.StreamState(t.Context(), stream.Ledger)
		if err != nil {
			return false
		}
		reached, err := s.Store.LedgerReached(t.Context(), state.Created)
		return err == nil && reached == state.LastSequence
	})
	for _, stage := range s.stages {
		stage.Stop(t)
	}
}

// exec runs a statement with all rights that changes a table: ALTER TABLE x or INSERT INTO x.
func (s *site) exec(t testing.TB, format string, args ...any) {
	t.Helper()
	statement := fmt.Sprintf(format, args...)
	if s.changed == nil {
		s.changed = map[string]bool{}
	}
	s.changed[strings.Fields(statement)[2]] = true
	s.Exec(t, "%s", statement)
}

// compare runs the comparison and returns its differences.
func (s *site) compare(t testing.TB) (*reconcile.Summary, []reconcile.Difference) {
	t.Helper()
	var found []reconcile.Difference
	summary, err := reconcile.Run(t.Context(), reconcile.Site{
		Client: s.Client, Store: s.Store, KeyList: s.path("keys", keystore.ListName), Stamps: s.path("timestamps"), Authorities: s.authorities,
		Bundles: s.path("bundles"), Ledger: s.path("ledger"), Log: s.path("log"), Now: s.now,
	}, func(d *reconcile.Difference) error {
		found = append(found, *d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return summary, found
}

func (s *site) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// lines returns differences as text.
func lines(found []reconcile.Difference) string {
	var text bytes.Buffer
	for i := range found {
		fmt.Fprintln(&text, &found[i])
	}
	return text.String()
}
