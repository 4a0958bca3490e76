package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

const (
	cuts   = 3   // how often the power is lost while one fleet publishes
	enough = 200 // how many traces each moment waits for

	wholeSite = 2048 // megabytes for all data of a site
)

// powerLoss takes the power of the disk with all data, at certain moments.
func powerLoss(name string, moment func(*site, *rand.Rand)) scenario {
	start := func(t testing.TB, disk *durabletest.Disk) *site { return newSiteAt(t, place{}.on(disk)) }
	return onDisk(name, durabletest.New, wholeSite, start, func(s *site, disk *durabletest.Disk, r *rand.Rand) {
		for range cuts {
			moment(s, r)
			s.losePower(disk)
		}
	})
}

// on returns the place with all its directories on one disk.
func (at place) on(disk *durabletest.Disk) place {
	at.engineDir, at.brokerDir = filepath.Join(disk.Dir, "engine"), filepath.Join(disk.Dir, "broker")
	at.dataDir = filepath.Join(disk.Dir, "data")
	return at
}

// onlyInBroker is a moment when only the broker has some acknowledged traces.
func (s *site) onlyInBroker(random *rand.Rand) {
	s.t.Helper()
	s.stopReaders()
	s.awaitPublished(random)
}

// stopReaders suspends the services that read from the broker.
func (s *site) stopReaders() {
	s.t.Helper()
	for _, reader := range []*service{s.verifier, s.drift, s.exporter} {
		s.check(reader.cmd.Process.Signal(syscall.SIGSTOP))
	}
}

// awaitPublished waits until enough further traces are published.
func (s *site) awaitPublished(random *rand.Rand) {
	s.t.Helper()
	var before uint64
	pipelinetest.Await(s.t, "the broker to answer", func() bool { before = s.published(); return before > 0 })
	pipelinetest.Await(s.t, "traces in the broker", func() bool { return s.published() >= before+enough })
	pause(random, pace)
}

// published returns the number of traces in the broker, 0 while it does not answer.
func (s *site) published() uint64 {
	state, err := s.client.StreamState(background, stream.Traces)
	if err != nil {
		return 0
	}
	return state.LastSequence
}

// whileSealing is a moment when the exporter writes bundles, the ledger and its plans.
func (s *site) whileSealing(random *rand.Rand) {
	s.t.Helper()
	before := s.counts().Bundles
	s.await("bundles to be sealed", func(c store.Counts) bool { return c.Bundles > before+2 })
	pause(random, 2*pace)
}

// afterMerge is the moment when rows are in a part that was just merged, and no longer in
// the inserted parts.
func (s *site) afterMerge(random *rand.Rand) {
	s.t.Helper()
	removed := func() bool {
		return s.query("SELECT count() FROM system.parts WHERE database = 'plumbline' AND table = 'traces' AND NOT active")[0][0] == uint64(0)
	}
	s.exec("ALTER TABLE traces MODIFY SETTING old_parts_lifetime = 0, cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0")
	s.stopReaders()
	pipelinetest.Await(s.t, "the parts before the merge to go", removed)
	s.exec("OPTIMIZE TABLE traces FINAL")
	pipelinetest.Await(s.t, "the merged parts to go", removed)
	pause(random, pace)
}

// losePower takes the power of everything at one moment, and restarts everything with the data
// on the disk. Every answer that a publisher got is from before that moment: all processes
// are stopped when the disk is cut off, and never continue.
func (s *site) losePower(disk *durabletest.Disk) {
	s.t.Helper()
	services := s.services()
	if s.ownBroker != nil {
		services = append([]*service{s.ownBroker}, services...)
	}
	pids := []int{s.engine.Pid()}
	if s.broker != nil {
		pids = append(pids, s.broker.Pid())
	}
	for _, service := range services {
		pids = append(pids, service.cmd.Process.Pid)
	}
	for _, pid := range pids {
		if pid == 0 { // 0 would mean this process's own group
			s.t.Fatal("a server is being restarted before it lost its power")
		}
		s.check(syscall.Kill(pid, syscall.SIGSTOP))
	}
	disk.CutPower()
	for _, service := range services {
		s.check(service.kill())
	}
	s.killServers()
	disk.RestorePower()
	s.startServers()
	for _, service := range services {
		s.check(service.start())
	}
	s.awaitUp()
}

// killServers kills the servers that the test process supervises, immediately.
func (s *site) killServers() {
	s.t.Helper()
	now, cancel := context.WithCancel(background)
	cancel()
	stops := []func(context.Context) error{s.engine.Stop}
	if s.broker != nil {
		stops = append(stops, s.broker.Stop)
	}
	for _, stop := range stops {
		if err := stop(now); !errors.Is(err, now.Err()) {
			s.check(err)
		}
	}
}

// startServers restarts them, at the same addresses.
func (s *site) startServers() {
	s.t.Helper()
	at, err := url.Parse(s.engine.AdminDSN())
	if err != nil {
		s.t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		s.t.Fatal(err)
	}
	if s.engine, err = engine.Start(s.t.Context(), engine.Config{DataDir: s.place.engineDir, NativePort: port}); err != nil {
		s.t.Fatal(err)
	}
	if s.broker == nil {
		return
	}
	if s.broker, err = broker.Start(s.t.Context(), broker.Config{DataDir: s.place.brokerDir}); err != nil {
		s.t.Fatal(err)
	}
	if s.broker.URL() != s.place.nats.URL || s.engine.AdminDSN() != at.String() {
		s.t.Fatalf("the servers are at other addresses than before the loss of power: %s, %s", s.broker.URL(), s.engine.AdminDSN())
	}
}

// unsafely lets the services work with servers that can lose what they acknowledged.
var unsafely = map[string][]string{
	"ingest":   {"PLUMBLINE_NATS_ALLOW_UNSAFE=true"},
	"verifier": {"PLUMBLINE_NATS_ALLOW_UNSAFE=true", "PLUMBLINE_CLICKHOUSE_ALLOW_UNSAFE=true"},
	"drift":    {"PLUMBLINE_NATS_ALLOW_UNSAFE=true", "PLUMBLINE_CLICKHOUSE_ALLOW_UNSAFE=true"},
	"exporter": {"PLUMBLINE_NATS_ALLOW_UNSAFE=true", "PLUMBLINE_CLICKHOUSE_ALLOW_UNSAFE=true"},
}

// brokerWithoutSync is a negative control: power-loss-ingest with a NATS server in its default
// configuration, which syncs every two minutes. The power is lost soon after a sync.
func brokerWithoutSync() scenario {
	start := func(t testing.TB, disk *durabletest.Disk) *site {
		at := place{settings: unsafely}.on(disk)
		server, own := startOwnBroker(t, at.brokerDir)
		at.nats = server
		s := newSiteAt(t, at)
		s.ownBroker = own
		return s
	}
	c := onDisk("control-broker-default-sync-interval", durabletest.New, wholeSite, start, func(s *site, disk *durabletest.Disk, r *rand.Rand) {
		s.stopReaders()
		disk.Sync()
		s.awaitPublished(r)
		s.losePower(disk)
	})
	c.control = true
	return c
}

// startOwnBroker starts an external NATS server, with default settings except for what
// the test needs.
func startOwnBroker(t testing.TB, dir string) (stream.Config, *service) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "nats-server")
	if output, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, output)
	}
	client, monitor := freeAddress(t), freeAddress(t)
	clientAt, monitorAt := mustParse(t, "nats://"+client), mustParse(t, "http://"+monitor)
	own := run(t, &service{name: "nats-server", program: program, address: monitor, env: environment(), args: []string{
		"--jetstream", "--store_dir", dir, "--addr", clientAt.Hostname(), "--port", clientAt.Port(), "--http_port", monitorAt.Port(),
	}})
	pipelinetest.Await(t, "the NATS server", func() bool {
		answer, err := http.Get(monitorAt.String() + "/healthz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	return stream.Config{URL: clientAt.String(), MonitorURL: monitorAt.String(), Replicas: 1}, own
}

func mustParse(t testing.TB, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// engineWithoutSync is a negative control: the table has ClickHouse's default settings.
// Rows whose traces the verifier has acknowledged are lost.
func engineWithoutSync() scenario {
	start := func(t testing.TB, disk *durabletest.Disk) *site {
		return newSiteAt(t, place{settings: unsafely}.on(disk))
	}
	c := onDisk("control-engine-without-fsync", durabletest.New, wholeSite, start, func(s *site, disk *durabletest.Disk, r *rand.Rand) {
		s.exec("ALTER TABLE traces MODIFY SETTING fsync_after_insert = 0, fsync_part_directory = 0")
		disk.Sync()
		for range cuts { // the rows that are gone after one of them may be redelivered: their acknowledgements are gone, too
			for range 2 { // rows acknowledged in the first wait are on disk after the second
				before := s.counts().Traces
				s.await("rows that nobody synced", func(c store.Counts) bool { return c.Traces >= before+enough })
			}
			pause(r, time.Second)
			s.losePower(disk)
		}
	})
	c.control = true
	return c
}
