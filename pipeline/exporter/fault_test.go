package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/destination"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

type faultyRows struct {
	*store.Store
	f *pipelinetest.Fault
}

func (r faultyRows) NumberedTraces(ctx context.Context, questions []store.NumberQuestion) (found [][]session.NumberedTrace, err error) {
	err = r.f.Around("numbers", func() (err error) { found, err = r.Store.NumberedTraces(ctx, questions); return err })
	return found, err
}

func (r faultyRows) PriorTraces(ctx context.Context, ids []string) (found []session.PriorTrace, err error) {
	err = r.f.Around("prior traces", func() (err error) { found, err = r.Store.PriorTraces(ctx, ids); return err })
	return found, err
}

func (r faultyRows) InsertSessionVerdicts(ctx context.Context, verdicts []*schema.SessionVerdict) error {
	return r.f.Around("session verdicts", func() error { return r.Store.InsertSessionVerdicts(ctx, verdicts) })
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

func (b faultyBucket) WriteAll(ctx context.Context, writes []stream.Write) (revisions []uint64, err error) {
	step := "plan"
	if record, err := seal.Decode(writes[0].Value); err != nil || record.State == seal.Sealed {
		step = "mark as sealed"
	}
	err = b.f.Around(step, func() (err error) { revisions, err = b.Bucket.WriteAll(ctx, writes); return err })
	return revisions, err
}

func (r faultyRows) InsertBundleCopies(ctx context.Context, rows []store.BundleCopy) error {
	return r.f.Around("bundle copies", func() error { return r.Store.InsertBundleCopies(ctx, rows) })
}

type faultyDestination struct {
	destination.Destination
	f *pipelinetest.Fault
}

func (d faultyDestination) Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error {
	return d.f.Around("deliver", func() error { return d.Destination.Deliver(ctx, name, sha256, content) })
}

type faultyBroker struct {
	*stream.Client
	f *pipelinetest.Fault
}

func (b faultyBroker) PublishAlerts(ctx context.Context, alerts []wire.Alert) error {
	return b.f.Around("alerts", func() error { return b.Client.PublishAlerts(ctx, alerts) })
}

func (b faultyBroker) AppendLedger(ctx context.Context, events ...ledger.Event) error {
	return b.f.Around("ledger", func() error { return b.Client.AppendLedger(ctx, events...) })
}

// exporting runs an exporter under a fault until ctx ends or the fault crashes it.
func exporting(ctx context.Context, t *testing.T, rig *pipelinetest.Rig, cfg *Config, f *pipelinetest.Fault) error {
	return exportingBy(ctx, t, time.Now, rig, cfg, f)
}

// exportingBy is exporting on a machine with the given wall clock.
func exportingBy(ctx context.Context, t *testing.T, wall func() time.Time, rig *pipelinetest.Rig, cfg *Config, f *pipelinetest.Fault) error {
	return exportingUnder(ctx, t, func(context.Context) error { return nil }, wall, rig, cfg, f)
}

// confirming is a term whose process owns the partitions as long as confirm returns nil.
type confirming struct {
	*ownership.Term
	confirm func(context.Context) error
}

func (c confirming) Confirm(ctx context.Context) error { return c.confirm(ctx) }

// exportingUnder is exportingBy as the owner of all partitions.
func exportingUnder(ctx context.Context, t *testing.T, confirm func(context.Context) error, wall func() time.Time, rig *pipelinetest.Rig, cfg *Config, f *pipelinetest.Fault) error {
	env := pipelinetest.Env(t, "exporter")
	e, owners, err := open(ctx, cfg, env, rig.Client, "here")
	if err != nil {
		return err
	}
	e.clock = newClock(wall)
	bucket, err := rig.Client.Bucket(ctx, stream.Seals)
	if err != nil {
		return err
	}
	if err := e.openSigner(ctx, cfg.keyFile()); err != nil {
		return err
	}
	e.rows, e.seals, e.broker = faultyRows{rig.Store, f}, faultyBucket{bucket, f}, faultyBroker{rig.Client, f}
	if err := os.MkdirAll(cfg.bundleDir(), 0o750); err != nil {
		return err
	}
	k := e.newKeeper(rig.Client, rig.Store)
	k.rows, k.confirm = e.rows, confirm
	if err := k.openCopies(ctx, rig.Client); err != nil {
		return err
	}
	e.keeper.Store(k)
	for _, copier := range k.copies {
		copier.To = faultyDestination{copier.To, f}
	}
	if f.Crash != nil {
		e.env.DrainBudget = time.Nanosecond
	}
	return service.Group(ctx, k.copies.run, func(ctx context.Context) error {
		member, err := ownership.Join(ctx, owners)
		if err != nil {
			return err
		}
		return member.Run(ctx, func(ctx context.Context, term *ownership.Term) error { return e.own(ctx, confirming{term, confirm}) })
	})
}

// crash runs an exporter until a fault crashes it.
func crash(t *testing.T, rig *pipelinetest.Rig, cfg *Config, f *pipelinetest.Fault) {
	t.Helper()
	ctx, die := context.WithTimeout(t.Context(), 3*time.Minute)
	defer die()
	f.Crash = die
	err := exporting(ctx, t, rig, cfg, f)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, pipelinetest.ErrInjected) {
		t.Fatal(err)
	}
	if !f.Met() {
		t.Fatal("the step with the fault was not reached")
	}
}

// Every external step of sealing fails once, before or after it took effect, and the exporter
// continues or crashes. In the end there is one bundle, recorded once, and one verdict on the
// session, equal to that in the bundle. A file that existed at the crash is unchanged.
func TestSealingSurvivesEveryStep(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	judging := verifier.Default()
	judging.Common, judging.ClickHouse, judging.BatchAge = rig.Common(), rig.ClickHouse(), 20*time.Millisecond
	judge := pipelinetest.Env(t, "verifier")
	pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &judging, judge) })
	n := 0
	for _, step := range []string{
		"numbers", "prior traces", "plan", "session verdicts", "bundles", "seal runs", "sessions", "alerts", "ledger", "mark as sealed",
		"deliver", "bundle copies",
	} {
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

func survive(t *testing.T, rig *pipelinetest.Rig, session string, f *pipelinetest.Fault, crashes bool) {
	cfg := Default()
	cfg.Common, cfg.DataDir, cfg.Every = rig.Common(), t.TempDir(), 20*time.Millisecond
	cfg.Copies.ObjectStore = "bundles"
	publishGaps(t, rig, session)
	var left []byte // by the crashed process
	if crashes {
		crash(t, rig, &cfg, f)
		left = onlyBundle(t, &cfg)
	}
	f.Crash = nil // the crash has happened: from here on it is the next process
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return exporting(ctx, t, rig, &cfg, f) })
	pipelinetest.Await(t, "the session marked as sealed", func() bool { return sealedRecord(t, rig, session) })
	data := checkOneBundle(t, rig, &cfg, session)
	pipelinetest.Await(t, "the record of its copy", func() bool { return copied(t, rig, cfg.Copies.ObjectStore, data) })
	stage.Stop(t)
	if !f.Met() {
		t.Fatal("the step with the fault was not reached")
	}
	if left != nil && !bytes.Equal(left, data) {
		t.Error("the bundle has other bytes than before the crash")
	}
	checkOneVerdict(t, rig, session, data)
	checkDelivered(t, rig, &cfg, data)
}

// copied reports whether the object store's copy of a bundle is on record.
func copied(t *testing.T, rig *pipelinetest.Rig, name string, bundle []byte) bool {
	t.Helper()
	copies, err := rig.Store.BundleCopies(t.Context(), schema.DigestOf(bundle))
	if err != nil || len(copies) > 1 {
		t.Fatalf("%d copies, %v", len(copies), err)
	}
	return len(copies) == 1 && copies[0].Destination == "nats:"+name && copies[0].Bytes == uint64(len(bundle))
}

// checkDelivered requires that the object store has the bundle.
func checkDelivered(t *testing.T, rig *pipelinetest.Rig, cfg *Config, bundle []byte) {
	t.Helper()
	objects, err := rig.Client.Objects(t.Context(), cfg.Copies.ObjectStore)
	if err != nil {
		t.Fatal(err)
	}
	for file, err := range sealedFiles(cfg.bundleDir()) {
		if err != nil {
			t.Fatal(err)
		}
		stored, err := objects.Read(t.Context(), filepath.ToSlash(file))
		if err != nil || !bytes.Equal(stored, bundle) {
			t.Errorf("the object store has other bytes of %s: %v", file, err)
		}
	}
}

// publishGaps publishes a session that lacks number 2 and a prior trace, and requests that it is
// sealed.
func publishGaps(t *testing.T, rig *pipelinetest.Rig, session string) {
	t.Helper()
	rig.Publish(t, numbered("tr-1-"+session, session, 1, ""), numbered("tr-3-"+session, session, 3, "gone-"+session))
	requestEnd(t, rig, session)
}

// requestEnd requests that a session is sealed with everything published so far.
func requestEnd(t *testing.T, rig *pipelinetest.Rig, session string) {
	t.Helper()
	state, err := rig.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	end := wire.EndRequest{AgentID: "a", SessionID: session, ThroughSequence: state.LastSequence, Stream: state.Created.UnixNano()}
	if err := rig.Client.RequestEnd(t.Context(), subject.Partition("a"), end); err != nil {
		t.Fatal(err)
	}
}

// numbered returns a trace with a sequence number, at that second. It names a prior trace unless
// prior is empty.
func numbered(id, session string, number int, prior string) stream.Record {
	priors := "[]"
	if prior != "" {
		priors = fmt.Sprintf("[%q]", prior)
	}
	r := pipelinetest.Trace(id, "a", "ac", session, fmt.Sprintf("2026-02-01T00:00:%02dZ", number), "search")
	context := fmt.Sprintf(`"context":{"prior_trace_ids":%s,"metadata":{"sequence_number":%d},`, priors, number)
	return pipelinetest.Record("a", bytes.Replace(r.Data, []byte(`"context":{`), []byte(context), 1))
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

// onlyBundle reads the only bundle file; nil where there is none.
func onlyBundle(t *testing.T, cfg *Config) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cfg.bundleDir(), "*", "*.tar.gz"))
	if err != nil || len(files) > 1 {
		t.Fatalf("files %v, error %v", files, err)
	}
	if len(files) == 0 {
		return nil
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkOneBundle requires one file, one row for it, and one part.
func checkOneBundle(t *testing.T, rig *pipelinetest.Rig, cfg *Config, session string) []byte {
	t.Helper()
	data := onlyBundle(t, cfg)
	bundles, err := rig.Store.Bundles(t.Context(), "a", session)
	if err != nil || len(bundles) != 1 {
		t.Fatalf("%d bundles, error %v", len(bundles), err)
	}
	if bundles[0].SHA256 != schema.DigestOf(data) || bundles[0].Part != 1 {
		t.Errorf("row %+v is not about the file", bundles[0])
	}
	return data
}

// checkOneVerdict requires that the session has one verdict, equal to that in its bundle, and one
// alert about it.
func checkOneVerdict(t *testing.T, rig *pipelinetest.Rig, session string, bundle []byte) {
	t.Helper()
	verdicts, err := rig.Store.SessionVerdicts(t.Context(), "a", session)
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("%d verdicts, error %v", len(verdicts), err)
	}
	sealed, err := seal.SessionVerdict(bundle)
	if err != nil || !reflect.DeepEqual(sealed, verdicts[0]) {
		t.Errorf("in the bundle is\n%+v (%v), in the table\n%+v", sealed, err, verdicts[0])
	}
	if counts := verdicts[0].FindingCounts; counts[schema.TraceGap] != 2 || len(counts) != 1 {
		t.Errorf("findings %v, want a missing number and a missing prior trace", counts)
	}
	if n := len(alertsOn(t, rig, session)); n != 1 {
		t.Errorf("%d alerts", n)
	}
}

// alertsOn returns the alerts on findings of one session.
func alertsOn(t *testing.T, rig *pipelinetest.Rig, session string) (found []schema.SessionVerdict) {
	t.Helper()
	consumer, err := rig.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Alerts, Filter: "aap.alert.finding.*"})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Fetch(t.Context(), nil, int(state.Messages), 16<<20, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		var v schema.SessionVerdict
		if err := json.Unmarshal(m.Data, &v); err != nil {
			t.Fatal(err)
		}
		if v.SessionID == session {
			found = append(found, v)
		}
	}
	return found
}
