package integration_test

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// site is a complete installation for one test.
type site struct {
	t      testing.TB
	dir    string
	place  place
	broker *broker.Broker // nil if place has another broker
	nodes  *cluster       // if place has a cluster
	engine *engine.Engine
	store  *store.Store   // as the administrator
	client *stream.Client // as a publisher with rights to everything
	admin  jetstream.JetStream

	ingest, verifier, drift, exporter *service
	started                           []*service // all that method service has started
	ownBroker                         *service   // an external NATS server, in a process of its own
	publisher                         *publisher

	lines    [][]byte // the lines that the fleet of a scenario of TestChaos publishes
	expected expectation
}

// place configures where a site keeps its data and how its services reach the servers. The zero
// value is a site with its own servers and all data in a directory of the test.
type place struct {
	engineDir, brokerDir, dataDir string // of the engine, the broker and the exporter

	nats stream.Config // a broker that the test started, with its addresses and replicas

	shards []*engine.Engine // engines that the test started, the shards of cluster enginetest.Cluster

	// throughNATS and throughEngine replace a server's address with the one that the services
	// use, such as a proxy's. The test itself uses the original address.
	throughNATS, throughEngine func(address string) string

	// defaultBatches leaves the services the batch ages and intervals that an operator gets. Without
	// it they are short, so that tests wait less.
	defaultBatches bool

	settings map[string][]string // environment variables of services, by the service's name
}

// newSite starts everything and returns when it is ready.
func newSite(t testing.TB) *site { return newSiteAt(t, place{}) }

// newSiteAt starts everything at a place and returns when it is ready.
func newSiteAt(t testing.TB, at place) *site {
	t.Helper()
	s := newServers(t, at)
	s.migrate()
	age, every := []string{"PLUMBLINE_BATCH_AGE=50ms"}, []string{"PLUMBLINE_EVERY=50ms"}
	if at.defaultBatches {
		age, every = nil, nil
	}
	s.ingest = s.service("ingest")
	s.verifier = s.service("verifier", age...)
	s.drift = s.service("drift", age...)
	s.exporter = s.service("exporter", append(every, "PLUMBLINE_DATA_DIR="+s.place.dataDir)...)
	for _, service := range s.services() {
		service.awaitReady()
	}
	s.publisher = &publisher{t: t, url: "http://" + s.ingest.address}
	return s
}

// migrate creates the tables, on every server of a cluster.
func (s *site) migrate() {
	s.t.Helper()
	over, engines := database.Cluster{}, []*engine.Engine{s.engine}
	if len(s.place.shards) > 0 {
		over, engines = database.Cluster{Name: enginetest.Cluster, WithoutKeeper: true}, s.place.shards
	}
	for _, e := range engines {
		if err := over.Migrate(s.t.Context(), e.AdminDSN()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// newServers starts broker and engine, without tables.
func newServers(t testing.TB, at place) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), place: at}
	s.place.engineDir = cmp.Or(at.engineDir, filepath.Join(s.dir, "engine"))
	s.place.brokerDir = cmp.Or(at.brokerDir, filepath.Join(s.dir, "broker"))
	s.place.dataDir = cmp.Or(at.dataDir, s.dir)
	var err error
	if len(at.shards) > 0 {
		s.engine = at.shards[0]
	} else {
		if s.engine, err = engine.Start(t.Context(), engine.Config{DataDir: s.place.engineDir, ReadyTimeout: 3 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.check(s.engine.Stop(background)) })
	}
	if at.nats.URL == "" {
		if s.broker, err = broker.Start(t.Context(), broker.Config{DataDir: s.place.brokerDir}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.check(s.broker.Stop(background)) })
		s.place.nats.URL, s.place.nats.MonitorURL, s.place.nats.Replicas = s.broker.URL(), s.broker.MonitorURL(), 1
	}
	if s.store, err = store.Open(t.Context(), store.Config{DSN: s.engine.AdminDSN(), Stage: "integration"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.check(s.store.Close()) })
	connection := s.place.nats
	connection.Name = "integration"
	if s.client, err = stream.Connect(t.Context(), connection); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.check(s.client.Close()) })
	return s
}

// service starts a service of this site.
func (s *site) service(name string, settings ...string) *service {
	s.t.Helper()
	address := freeAddress(s.t)
	listen := "PLUMBLINE_ADMIN_LISTEN="
	if name == "ingest" { // publishers and operators use the same interface
		listen = "PLUMBLINE_LISTEN="
		settings = append(settings, "PLUMBLINE_HANDSHAKE_KEY_FILE="+filepath.Join(s.place.dataDir, "keys", "handshake.key"),
			"PLUMBLINE_MICRO_KEY_FILE="+filepath.Join(s.place.dataDir, "keys", "micro.key"))
	} else {
		settings = append(settings, "PLUMBLINE_CLICKHOUSE_DSN="+through(s.place.throughEngine, s.engine.ServiceDSN()))
		if len(s.place.shards) > 0 {
			settings = append(settings, "PLUMBLINE_CLICKHOUSE_CLUSTER="+enginetest.Cluster)
		}
	}
	settings = append(settings, s.place.settings[name]...)
	env := append(environment(), listen+address,
		"PLUMBLINE_NATS_URL="+through(s.place.throughNATS, s.place.nats.URL),
		"PLUMBLINE_NATS_MONITOR_URL="+s.place.nats.MonitorURL,
		fmt.Sprintf("PLUMBLINE_NATS_REPLICAS=%d", s.place.nats.Replicas))
	started := run(s.t, &service{name: name, program: program(s.t, name), address: address, env: append(env, settings...)})
	s.started = append(s.started, started)
	return started
}

// through applies a function to an address, if the function is not nil.
func through(detour func(string) string, address string) string {
	if detour == nil {
		return address
	}
	return detour(address)
}

// environment returns the variables that every process inherits.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(), "GORACE=" + os.Getenv("GORACE")}
}

func (s *site) services() []*service {
	return []*service{s.ingest, s.verifier, s.drift, s.exporter}
}

// terminate sends SIGTERM to the services and requires a clean end of each.
func (s *site) terminate() {
	s.t.Helper()
	for _, service := range s.services() {
		service.terminate()
	}
}

func (s *site) check(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

// counts returns the pipeline's own counts; zero while the database is unavailable.
func (s *site) counts() store.Counts {
	counts, err := s.count()
	if err != nil {
		return store.Counts{}
	}
	return counts
}

// count queries a database that may hang.
func (s *site) count() (store.Counts, error) {
	ctx, cancel := context.WithTimeout(background, questions.Timeout)
	defer cancel()
	return s.store.Counts(ctx)
}

// await waits until the counts satisfy the condition. On failure the error contains the
// progress.
func (s *site) await(what string, holds func(store.Counts) bool) {
	s.t.Helper()
	s.awaitWithin(3*time.Minute, what, holds)
}

func (s *site) awaitWithin(patience time.Duration, what string, holds func(store.Counts) bool) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			progress, err := s.client.ConsumerProgress(background, stream.Traces, stream.VerifierConsumer)
			counts, unanswered := s.count()
			s.t.Logf("waiting for %s: %+v %v; the verifier: %+v %v", what, counts, unanswered, progress, err)
		}
	}()
	pipelinetest.AwaitWithin(s.t, patience, what, func() bool { return holds(s.counts()) })
}

// kill ends a server with SIGKILL; its supervisor restarts it.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// key returns the public key of the exporter.
func (s *site) key() ed25519.PublicKey {
	s.t.Helper()
	key, err := keyfile.Load(filepath.Join(s.place.dataDir, "keys", "session.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Public().(ed25519.PublicKey)
}

// checkAtRest waits until there is no work left and checks the invariants. A process that starts appends its start to
// the ledger, so checkAtRest first waits until every process is ready.
func (s *site) checkAtRest(acked []schema.Digest) checker.Seen {
	s.t.Helper()
	for _, service := range s.started {
		if !service.ended() {
			service.awaitReady()
		}
	}
	checker.AwaitRest(s.t, s.client)
	return checker.Check(s.t, s.site(), acked)
}

// publishedRule makes drift apply the published rule, which a few traces are enough for.
var publishedRule = place{settings: map[string][]string{"drift": {"PLUMBLINE_MODE=first"}}}

// site returns what the checker checks.
func (s *site) site() checker.Site {
	params := drift.DefaultParams()
	if slices.Equal(s.place.settings["drift"], publishedRule.settings["drift"]) {
		params = drift.PublishedParams()
	}
	return checker.Site{Drift: params, Client: s.client, Store: s.store, Bundles: s.bundleDir(), Kept: reconcile.Site{
		Client: s.client, Store: s.store, Pinned: []ed25519.PublicKey{s.key()},
		Bundles: s.bundleDir(), Ledger: filepath.Join(s.place.dataDir, "ledger"), Log: filepath.Join(s.place.dataDir, "log"),
	}}
}

func (s *site) bundleDir() string { return filepath.Join(s.place.dataDir, "bundles") }
