// Package pipelinetest provides what the tests of stages need: a real broker with the topology, a
// new database of the real engine with the tables, and traces to send through them.
//
// A test package that uses it must have a TestMain that calls Main.
package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Main is the complete body of a TestMain.
func Main(m *testing.M) { enginetest.Main(m) }

// Rig is the broker and the database of one test.
type Rig struct {
	Broker *brokertest.Server // nil if the broker is a cluster
	DSN    string             // of the database's administrator
	Client *stream.Client
	Store  *store.Store

	nats    stream.Config  // configuration of connections to the broker
	cluster string         // of the tables; empty for one server
	servers []*store.Store // of the database, with all privileges: one, or one for each shard
}

// New creates a rig that exists as long as the test.
func New(t testing.TB) *Rig {
	t.Helper()
	broker := brokertest.New(t)
	r := &Rig{Broker: broker, nats: stream.Config{URL: broker.URL(), MonitorURL: broker.MonitorURL(), Replicas: 1, Name: "test"}}
	r.open(t)
	return r
}

// NewOn creates a rig on a broker of the test, with a user that may create the streams.
func NewOn(t testing.TB, broker stream.Config) *Rig {
	t.Helper()
	r := &Rig{nats: broker}
	r.open(t)
	return r
}

// NewCluster creates a rig whose broker is a cluster that stores each message on all its nodes.
func NewCluster(t testing.TB, nodes int) (*Rig, *brokertest.Cluster) {
	t.Helper()
	cluster := brokertest.NewCluster(t, nodes)
	r := &Rig{nats: stream.Config{URL: cluster.URL(), MonitorURL: cluster.MonitorURL(0), Replicas: nodes, Name: "test"}}
	r.open(t)
	return r, cluster
}

func (r *Rig) open(t testing.TB) {
	t.Helper()
	var dsns []string // of a new database: on one server, or on two shards (make shards)
	if enginetest.Sharded() {
		r.cluster = enginetest.Cluster
		dsns = enginetest.MigratedShards(t, database.Cluster{Name: r.cluster, WithoutKeeper: true}.Migrate)
	} else {
		dsns = []string{enginetest.Migrated(t, database.Migrate)}
	}
	r.DSN = dsns[0]
	for _, dsn := range dsns {
		r.servers = append(r.servers, openStore(t, store.Config{DSN: dsn + "?" + changed, Stage: "test", Cluster: r.cluster}))
	}
	r.Store = openStore(t, store.Config{DSN: r.DSN, Stage: "test", Cluster: r.cluster})
	r.Client = brokertest.Connect(t, r.nats)
	EnsureTopology(t, r.Client)
}

func openStore(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// EnsureTopology creates streams, buckets and consumers. Like the services, it retries after a
// transient error, such as a disk that is busy with other tests.
func EnsureTopology(t testing.TB, client *stream.Client) {
	t.Helper()
	Await(t, "the broker's streams", func() bool {
		err := client.EnsureTopology(t.Context())
		if err != nil && !errors.Is(err, stream.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// Recreate deletes streams of the broker, all if none is named, and creates them again.
func (r *Rig) Recreate(t testing.TB, names ...string) {
	t.Helper()
	js := r.Broker.JetStream()
	if names == nil {
		for name := range js.StreamNames(t.Context()).Name() {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	EnsureTopology(t, r.Client)
}

// ClickHouse returns the database configuration of a stage. It sets AllowUnsafe because a stage
// refuses a user who could remove rows, such as the rig's administrator.
func (r *Rig) ClickHouse() config.ClickHouse {
	return config.ClickHouse{DSN: r.DSN, Cluster: r.cluster, AllowUnsafe: true}
}

// Common returns the configuration of a stage on this rig, without an admin interface.
func (r *Rig) Common() config.Common {
	common := config.DefaultCommon("")
	common.NATS.URL, common.NATS.MonitorURL, common.NATS.Replicas = r.nats.URL, r.nats.MonitorURL, r.nats.Replicas
	common.DrainBudget = 20 * time.Second
	return common
}

// Env returns the environment of a stage whose log goes to the test's output.
func Env(t testing.TB, stage string) *service.Env {
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	return service.NewEnv(stage, "test", log, obs.NewRegistry("test"), new(obs.Health))
}

// Stage is a stage that runs in the test's process.
type Stage struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Go starts a stage. The test ends it if it is still running.
func Go(t testing.TB, serve func(context.Context) error) *Stage {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &Stage{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = serve(ctx)
	}()
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Deploy starts a stage as in a deployment, and waits until it has started. The channel receives its
// error when it ends.
func Deploy(t testing.TB, stage string, serve func(context.Context, *service.Env) error) (stop context.CancelFunc, ended chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	env := Env(t, stage)
	ended = make(chan error, 1)
	go func() { ended <- serve(ctx, env) }()
	Await(t, "the stage", func() bool { return env.Health.Reported().Ready || len(ended) > 0 })
	return stop, ended
}

// NamesThisProcess requires an error of a kind that names this process.
func NamesThisProcess(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on host ", os.Getpid())) {
		t.Errorf("ended with %v, want %q and the name of the holder", err, kind)
	}
}

// Stop ends the stage and waits until it has drained.
func (s *Stage) Stop(t testing.TB) {
	t.Helper()
	s.cancel()
	<-s.ended
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		t.Errorf("stage ended with: %v", s.err)
	}
	s.err = nil
}

// patience is longer than the broker's ack wait, after which the broker redelivers what a killed
// stage was processing.
const patience = 3 * time.Minute

// Await polls until the condition holds, at most for patience.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	AwaitWithin(t, patience, what, holds)
}

// AwaitWithin polls until the condition holds, at most for the given time. A pause is nine times as
// long as the question before it, and a twentieth of the time so far, within bounds: tests that count
// all rows of a database would otherwise take most of the CPU from what they wait for, and a wait of ten
// seconds would ask hundreds of times.
func AwaitWithin(t testing.TB, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	for asked := began; !holds(); asked = time.Now() {
		waited := time.Since(began)
		if waited > patience {
			t.Fatalf("timed out waiting for: %s", what)
		}
		time.Sleep(min(max(20*time.Millisecond, 9*time.Since(asked), waited/20), time.Second))
	}
}

func (r *Rig) Register(t testing.TB, raw ...[]byte) {
	t.Helper()
	registry, err := cards.Open(t.Context(), r.Client, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, card := range raw {
		if _, _, err := registry.Put(t.Context(), card); err != nil {
			t.Fatal(err)
		}
	}
}

// Publish publishes records and checks that each is stored or a duplicate. Like an agent, it repeats what the broker did not
// answer in time.
func (r *Rig) Publish(t testing.TB, records ...stream.Record) {
	t.Helper()
	committer := r.Client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	Await(t, "the broker to take the records", func() bool {
		outcomes, err := committer.Publish(t.Context(), records)
		if errors.Is(err, stream.ErrUnavailable) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range outcomes {
			if errors.Is(outcomes[i].Err, stream.ErrUnavailable) {
				records = records[i:]
				return false
			}
			if outcomes[i].Err != nil {
				t.Fatalf("record %d: %v", i, outcomes[i].Err)
			}
		}
		return true
	})
}

// Messages returns the first n messages of a stream.
func (r *Rig) Messages(t testing.TB, name string, n int) []stream.Message {
	t.Helper()
	reader, err := r.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: name})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	inbox, err := reader.Fetch(t.Context(), nil, n, 0, time.Minute)
	if err != nil || len(inbox) != n {
		t.Fatalf("%d of %d messages of stream %s, error %v", len(inbox), n, name, err)
	}
	return inbox
}

// Number returns the only number that a statement selects.
func (r *Rig) Number(t testing.TB, statement string) (n uint64) {
	t.Helper()
	result, err := r.Store.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		n = row[0].(uint64)
	}
	return n
}

// Record returns a record of raw bytes for an agent's subject, whatever they contain.
func Record(agent string, raw []byte) stream.Record {
	return stream.Record{Agent: agent, Data: raw, Digest: schema.DigestOf(raw)}
}

// changed are settings that make a statement return only when its change can be read: a mutation
// is done, and rows have reached their shards.
const changed = "mutations_sync=2&insert_distributed_sync=1"

// rowsHead matches the beginning of a statement about the rows that a server itself holds. For a
// table over all shards, ClickHouse refuses such a statement, or leaves the rows unchanged.
var rowsHead = regexp.MustCompile(`^((?:ALTER|TRUNCATE) TABLE|SYSTEM (?:STOP|START) MERGES) (\w+)( DELETE | UPDATE | MODIFY SETTING | RESET SETTING |$)`)

// Exec runs a statement with all privileges, and waits until its change can be read. A statement
// about the rows of a table runs on each server that holds some of them.
func (r *Rig) Exec(t testing.TB, format string, args ...any) {
	t.Helper()
	statement, servers := fmt.Sprintf(format, args...), r.servers[:1]
	if r.cluster != "" && rowsHead.MatchString(statement) {
		statement, servers = rowsHead.ReplaceAllString(statement, "${1} ${2}_local${3}"), r.servers
	}
	for _, server := range servers {
		result, err := server.Query(t.Context(), statement)
		if errors.Is(err, io.EOF) {
			continue // the statement has no result
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		for _, err := range result.Rows {
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
}

// Local returns the name of the part of a table whose rows a server itself holds.
func (r *Rig) Local(table string) string {
	if r.cluster != "" {
		return table + "_local"
	}
	return table
}
