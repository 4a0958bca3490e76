package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// fellows are exporters that share one directory, and the sessions that they must seal.
type fellows struct {
	t        *testing.T
	rig      *pipelinetest.Rig
	cfg      Config
	sessions int
}

// agents is how many agents have sessions: enough for every partition to have one, or nearly.
const agents = 48

func newFellows(t *testing.T) *fellows {
	rig, cfg := site(t)
	cfg.ClickHouse, cfg.TakeoverAfter = rig.ClickHouse(), time.Second
	cfg.Anchors.TransparencyLog, cfg.Copies.ObjectStore = true, "bundles"
	for i := range agents {
		rig.Register(t, pipelinetest.Card(fmt.Sprint("ac-", i), fmt.Sprint("agent-", i)))
	}
	return &fellows{t: t, rig: rig, cfg: *cfg}
}

// fellow is one of the exporters.
type fellow struct {
	*pipelinetest.Stage
	env *service.Env
}

// start starts an exporter, and waits until it is ready.
func (f *fellows) start(cfg Config) fellow {
	f.t.Helper()
	env := pipelinetest.Env(f.t, "exporter")
	stage := pipelinetest.Go(f.t, func(ctx context.Context) error { return Serve(ctx, &cfg, env) })
	pipelinetest.Await(f.t, "an exporter", func() bool { return env.Health.Reported().Ready })
	return fellow{stage, env}
}

func (f *fellows) awaitOwned(of fellow, n int) {
	f.t.Helper()
	pipelinetest.Await(f.t, fmt.Sprintf("%d partitions of an exporter", n), func() bool {
		return pipelinetest.Metric(f.t, of.env, "plumbline_partition_owned", "") == float64(n)
	})
}

// publish publishes a whole session of each agent.
func (f *fellows) publish() {
	f.t.Helper()
	records := make([]stream.Record, agents)
	for i := range records {
		agent, session := fmt.Sprint("agent-", i), fmt.Sprint("s-", f.sessions/agents)
		r := pipelinetest.Trace(fmt.Sprintf("tr-%s-%s", agent, session), agent, fmt.Sprint("ac-", i), session, "2026-02-01T00:00:00Z", "search")
		records[i] = pipelinetest.Record(agent, bytes.Replace(r.Data, []byte(`"context":{`), []byte(`"context":{"metadata":{"session_end":true},`), 1))
	}
	f.rig.Publish(f.t, records...)
	f.sessions += agents
}

// awaitSealed waits until every session is marked as sealed.
func (f *fellows) awaitSealed() {
	f.t.Helper()
	pipelinetest.Await(f.t, "all sessions sealed", func() bool {
		return f.rig.Number(f.t, "SELECT count() FROM sessions FINAL WHERE status = 'sealed'") == uint64(f.sessions)
	})
}

func sealedBy(t *testing.T, of fellow) float64 {
	t.Helper()
	return pipelinetest.Metric(t, of.env, "plumbline_exporter_bundles_total", "")
}

// check requires one bundle of each session: one file, one row, one leaf of the log with its proof, one
// copy, by one signer. Copies follow later.
func (f *fellows) check(keeper fellow) {
	f.t.Helper()
	bundles := bundlesOf(f.t, &f.cfg)
	rows := f.rig.Number(f.t, "SELECT uniqExact(sha256) FROM bundles")
	if len(bundles) != f.sessions || rows != uint64(f.sessions) {
		f.t.Errorf("%d sessions have %d files and %d rows", f.sessions, len(bundles), rows)
	}
	_, vkey := ask(f.t, keeper.env, "/v1/log/key")
	key, err := anchor.ParseVerifier(string(vkey))
	if err != nil {
		f.t.Fatal(err)
	}
	indexes := map[int64]bool{}
	for path, bundle := range bundles {
		indexes[logged(f.t, path, bundle, key).Index] = true
	}
	_, signed := ask(f.t, keeper.env, "/v1/log/checkpoint")
	head, err := anchor.OpenCheckpoint(signed, key)
	if err != nil || head.Size != int64(f.sessions) || len(indexes) != f.sessions {
		f.t.Errorf("the log has %+v (%v), %d proofs, want %d", head, err, len(indexes), f.sessions)
	}
	pipelinetest.Await(f.t, "all copies", func() bool {
		return f.rig.Number(f.t, "SELECT uniqExact(path) FROM bundle_copies") == uint64(2*f.sessions) // each with its proof
	})
}

// Two exporters share the sessions, and each session is sealed once. When the one that keeps log and copies
// ends, the other one keeps them and seals the rest.
func TestTwoShareThePartitions(t *testing.T) {
	f := newFellows(t)
	first := f.start(f.cfg)
	f.awaitOwned(first, subject.Partitions)
	f.publish()
	f.awaitSealed()
	second := f.start(f.cfg)
	f.awaitOwned(first, subject.Partitions/2)
	f.awaitOwned(second, subject.Partitions/2)
	before := sealedBy(t, first)
	f.publish()
	f.awaitSealed()
	f.check(first)
	if before != agents || sealedBy(t, first) == before || sealedBy(t, second) == 0 || sealedBy(t, first)+sealedBy(t, second) != 2*agents {
		t.Errorf("the first sealed %v alone, then up to %v, and the second %v", before, sealedBy(t, first), sealedBy(t, second))
	}
	f.publish()
	first.Stop(t)
	f.awaitOwned(second, subject.Partitions)
	f.awaitSealed()
	f.check(second)
}

// An exporter that is cut off, as if it were killed, loses its partitions to another one, which seals the
// rest. When it comes back it seals nothing that the other one sealed, and gets a share again.
func TestCutOffOwnerIsReplaced(t *testing.T) {
	f := newFellows(t)
	keeper := f.start(f.cfg)
	wire := brokertest.NewWire(t, f.rig.Broker.URL())
	behind := f.cfg
	behind.NATS.URL = wire.URL()
	stale := f.start(behind)
	f.awaitOwned(stale, subject.Partitions/2)
	f.publish()
	wire.Cut()
	f.publish()
	f.awaitOwned(keeper, subject.Partitions)
	f.awaitSealed()
	f.check(keeper)
	wire.Mend()
	f.awaitOwned(stale, subject.Partitions/2)
	f.publish()
	f.awaitSealed()
	f.check(keeper)
}

// If the record of owners is removed, the receipts are read again. What is sealed is not sealed again, and the rest is.
func TestRemovedRecord(t *testing.T) {
	f := newFellows(t)
	first := f.start(f.cfg)
	f.publish()
	f.awaitSealed()
	first.Stop(t)
	brokertest.RemoveKey(t, brokertest.Bucket(t, f.rig.Client, stream.Leases), stream.ExporterOwners)
	second := f.start(f.cfg)
	f.publish()
	f.awaitSealed()
	f.check(second)
	if sealed := sealedBy(t, second); sealed != agents {
		t.Errorf("%v bundles after the record was removed, want %d", sealed, agents)
	}
}

// The first exporter of this version begins every partition at the checkpoint of the version before.
func TestUpgrade(t *testing.T) {
	rig := pipelinetest.New(t)
	cfg := Default()
	cfg.Common, cfg.DataDir = rig.Common(), t.TempDir()
	for i := range uint64(9) {
		receipt := schema.Receipt{AgentID: "a", SessionID: "s", Sequence: i + 1}
		if err := rig.Client.PublishReceipts(t.Context(), [][]schema.Receipt{{receipt}}); err != nil {
			t.Fatal(err)
		}
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Receipts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		checkpoint *checkpoint
		want       uint64
	}{
		{nil, 0},
		{&checkpoint{StreamCreated: state.Created, From: 5}, 4},
		{&checkpoint{StreamCreated: state.Created.Add(-time.Hour), From: 5}, 0},
	} {
		if c.checkpoint != nil {
			value, err := json.Marshal(c.checkpoint)
			if err == nil {
				_, err = brokertest.Bucket(t, rig.Client, stream.Seals).Put(t.Context(), checkpointKey, value)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		e, owners, err := open(t.Context(), &cfg, pipelinetest.Env(t, "exporter"), rig.Client, "here")
		if err != nil {
			t.Fatal(err)
		}
		inTerm(t, e, owners, func() {
			if e.index.position != c.want || e.source.Owned() != everyPartition {
				t.Errorf("with checkpoint %+v it begins after %d, want %d", c.checkpoint, e.index.position, c.want)
			}
		})
		brokertest.RemoveKey(t, brokertest.Bucket(t, rig.Client, stream.Leases), stream.ExporterOwners)
	}
}

// A keeper keeps only what it sees in its own directory, and a holder of the lease that does not keep yet,
// or never will because it is of an earlier version, is no keeper.
func TestKeeperIsAsked(t *testing.T) {
	f := newFellows(t)
	held, err := service.Hold(t.Context(), &f.cfg.Common, pipelinetest.Env(t, "exporter"))
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := open(t.Context(), &f.cfg, pipelinetest.Env(t, "exporter"), f.rig.Client, "here")
	if err != nil {
		t.Fatal(err)
	}
	refusal := func(want string, bundles ...placedBundle) {
		t.Helper()
		if _, err := e.askKeeper(t.Context(), bundles); err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refusal("of an earlier version")
	if err := held.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	refusal("nobody keeps bundles now")
	keeper := f.start(f.cfg)
	refusal("is not the one that this process keeps")
	if e.directory, err = placeOf(&f.cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := e.askKeeper(t.Context(), nil); err != nil {
		t.Errorf("asked to keep nothing: %v", err)
	}
	f.publish()
	f.awaitSealed()
	path := slices.Sorted(maps.Keys(bundlesOf(t, &f.cfg)))[0]
	file := path[len(f.cfg.bundleDir())+1:]
	bundle := placedBundle{File: file, Session: "s-0", SHA256: schema.DigestOf(bundlesOf(t, &f.cfg)[path]).String()}
	head, err := e.askKeeper(t.Context(), []placedBundle{bundle})
	if err != nil || head == nil || head.Size != agents {
		t.Errorf("asked again: %+v, %v", head, err)
	}
	bundle.SHA256 = schema.DigestOf(nil).String()
	refusal("its SHA-256 is", bundle)
	for _, other := range []string{"../" + file, "/" + file, file + anchor.ProofSuffix, placeName} {
		bundle.File = other
		refusal("it is not the name of a bundle", bundle)
	}
	f.check(keeper)
	e.request = func(context.Context, []byte, time.Duration) ([]byte, error) { return []byte(`{"kept":true}`), nil }
	refusal("keeps no transparency log", bundle) // a bundle would be recorded without a leaf
}

// Exporters on one directory ask it at the same time whether it has room, and none says that it has not.
func TestRoomIsSeenByEach(t *testing.T) {
	dir := t.TempDir()
	var exporters sync.WaitGroup
	for range 4 {
		exporters.Go(func() {
			for range 50 {
				if err := room(dir)(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	exporters.Wait()
}
