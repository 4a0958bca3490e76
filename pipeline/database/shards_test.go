package database

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// openShards returns the DSNs of a migrated database, one DSN for each shard. All tests share this
// database. If all tests run on shards, each gets a database of its own, which it may change.
func openShards(t testing.TB) []string {
	t.Helper()
	if enginetest.Sharded() {
		return enginetest.MigratedShards(t, onTestShards.Migrate)
	}
	return enginetest.MigratedOnce(t, onTestShards.Migrate)
}

// onTestShards is the cluster of the engines of enginetest.Shards.
var onTestShards = Cluster{Name: enginetest.Cluster, WithoutKeeper: true}

// In a cluster each server is inspected, and each weakness names its server.
func TestPreflightOfACluster(t *testing.T) {
	enginetest.MigratedOnce(t, onTestShards.Migrate) // the services' own database
	dsns := openShards(t)
	service := openConfig(t, Config{DSN: enginetest.Shards(t)[0].ServiceDSN(), Stage: "test", Cluster: enginetest.Cluster})
	if found, err := service.Inspect(t.Context()); err != nil || !reflect.DeepEqual(found, Inspection{}) {
		t.Errorf("as a service: %+v, %v", found, err)
	}

	d := openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster})
	other := openDSN(t, dsns[1])
	over := "CREATE OR REPLACE TABLE traces AS traces_local ENGINE = " + clusterLayout(t, dsns[1]).distributed("traces")
	exec(t, other, "ALTER TABLE bundles_local RESET SETTING fsync_after_insert")
	exec(t, other, "RENAME TABLE cards_local TO elsewhere")
	exec(t, other, strings.Replace(over, "agent_id", "trace_id", 1))
	t.Cleanup(func() {
		exec(t, other, "ALTER TABLE bundles_local MODIFY SETTING fsync_after_insert = 1")
		exec(t, other, "RENAME TABLE elsewhere TO cards_local")
		exec(t, other, over)
	})
	found, err := d.Inspect(t.Context())
	if err != nil || len(found.Unknown) != 0 {
		t.Fatalf("%v %v", found.Unknown, err)
	}
	var said []string
	for _, w := range found.Weaknesses {
		said = append(said, w.Object+" "+w.Setting)
	}
	at := " on " + addressOf(t, other)
	for _, want := range []string{"table bundles_local" + at + " fsync_after_insert", "table cards_local" + at + " existence",
		"table traces" + at + " engine", "the user" + at + " right to TRUNCATE", "the user on " + addressOf(t, d) + " right to TRUNCATE"} {
		if !slices.Contains(said, want) {
			t.Errorf("missing: %s\n%s", want, strings.Join(said, "\n"))
		}
	}
	if slices.Contains(said, "table traces on "+addressOf(t, d)+" engine") {
		t.Errorf("the other server is reported, too: %v", said)
	}
}

// A server whose definition of the cluster differs would send rows to other shards: that is a
// weakness of this server.
func TestPreflightComparesDefinitionsOfTheCluster(t *testing.T) {
	enginetest.MigratedOnce(t, onTestShards.Migrate) // the services' own database
	d := openConfig(t, Config{DSN: enginetest.Shards(t)[0].ServiceDSN(), Stage: "test", Cluster: enginetest.Cluster})
	nodes, err := d.nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	if found, err := d.inspectNode(t.Context(), nodes[1], nodes); err != nil || len(found) != 0 {
		t.Errorf("the same definition: %v, %v", found, err)
	}
	for name, change := range map[string]func(*node){
		"another host":   func(n *node) { n.Host = "elsewhere" },
		"another weight": func(n *node) { n.Weight = 2 },
		"one copy more":  func(n *node) { n.Shard, n.Replica = 1, 2 },
	} {
		other := slices.Clone(nodes)
		change(&other[0])
		found, err := d.inspectNode(t.Context(), nodes[1], other)
		if err != nil || !slices.ContainsFunc(found, func(w Weakness) bool {
			return w.Setting == "definition" && w.Object == "cluster "+enginetest.Cluster+" on "+nodes[1].address()
		}) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func addressOf(t testing.TB, d *DB) string {
	t.Helper()
	o, err := d.cfg.options()
	if err != nil {
		t.Fatal(err)
	}
	return o.Addr[0]
}

func clusterLayout(t testing.TB, dsn string) layout {
	t.Helper()
	l, err := onTestShards.prepare(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// An unknown cluster is reported and left unchanged. So are tables of one server under a
// cluster's name, and tables of a cluster without one.
func TestClustersAndServersAreNotMixed(t *testing.T) {
	dsns := enginetest.ShardedDatabase(t)
	unknown := openConfig(t, Config{DSN: dsns[0], Cluster: "nobody"})
	if found, err := unknown.Inspect(t.Context()); err != nil || len(found.Weaknesses) != 1 || found.Weaknesses[0].Object != "cluster nobody" {
		t.Errorf("%+v %v", found, err)
	}
	for name, want := range map[string]string{"nobody": "has no cluster of this name: correct --clickhouse-cluster", "a'b": "want 1 to 64"} {
		if err := (Cluster{Name: name}).Migrate(t.Context(), dsns[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cluster %s: %v", name, err)
		}
	}

	alone := openDSN(t, dsns[0])
	exec(t, alone, "CREATE TABLE traces (trace_id String) ENGINE = MergeTree ORDER BY trace_id")
	exec(t, alone, "INSERT INTO traces VALUES ('tr-1')")
	err := onTestShards.Migrate(t.Context(), dsns[0])
	if err == nil || !strings.Contains(err.Error(), "holds the rows of a single server") {
		t.Errorf("tables of one server: %v", err)
	}
	if rows := one[uint64](t, alone, "SELECT count() FROM traces"); rows != 1 {
		t.Errorf("%d rows", rows)
	}

	spread := openShards(t)
	if err := Migrate(t.Context(), spread[0]); err == nil || !strings.Contains(err.Error(), "name the cluster") {
		t.Errorf("tables of a cluster as one server's: %v", err)
	}
	if found, err := openDSN(t, spread[0]).Inspect(t.Context()); err != nil || found.Weaknesses[0].Remedy != "name the cluster with --clickhouse-cluster" {
		t.Errorf("%+v %v", found, err)
	}
	grown := clusterLayout(t, spread[0])
	grown.shards = 3
	if err := grown.refuse("traces", clusterLayout(t, spread[0]).distributed("traces")); err == nil || !strings.Contains(err.Error(), "copies of stored rows would go to other shards") {
		t.Errorf("one more shard: %v", err)
	}
}

// A server that is stopped without refusing connections affects readiness, and is reported as not
// inspected. On a busy machine a ping may fail for another reason, so the test repeats it.
func TestPingAsksEveryShard(t *testing.T) {
	dsns := openShards(t)
	d := openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster})
	second := addressOf(t, openDSN(t, dsns[1]))
	pid := enginetest.Shards(t)[1].Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := sync.OnceValue(func() error { return syscall.Kill(pid, syscall.SIGCONT) })
	t.Cleanup(func() { _ = resume() })
	for named := false; !named; {
		err := d.Ping(t.Context()) // on a busy machine it may be answered before the signal has stopped the shard
		named = err != nil && strings.Contains(err.Error(), "every shard of cluster "+enginetest.Cluster)
	}
	for d.Ready(t.Context()) != nil { // a service starts without it
		if t.Context().Err() != nil {
			return
		}
	}
	found, err := d.Inspect(t.Context())
	if err != nil || len(found.Unknown) != 1 || !strings.Contains(found.Unknown[0], "server "+second) {
		t.Errorf("not inspected: %q, error %v, want server %s", found.Unknown, err, second)
	}
	if err := resume(); err != nil {
		t.Fatal(err)
	}
	for d.Ping(t.Context()) != nil {
		if t.Context().Err() != nil {
			return
		}
	}
}

// A service learns that there is nothing to migrate, without the privilege to query other
// servers.
func TestServiceHasNothingToMigrate(t *testing.T) {
	enginetest.MigratedOnce(t, onTestShards.Migrate) // the services' own database
	if err := (Cluster{Name: enginetest.Cluster}).Migrate(t.Context(), enginetest.Shards(t)[0].ServiceDSN()); err != nil {
		t.Error(err)
	}
}

// Without Keeper no statement reaches the cluster. The error comes at once and names the remedy.
func TestClusterWithoutKeeperIsNamed(t *testing.T) {
	dsns := enginetest.ShardedDatabase(t)
	err := Cluster{Name: enginetest.Cluster}.Migrate(t.Context(), dsns[0])
	if err == nil || !strings.Contains(err.Error(), "the servers have no Keeper") || !strings.Contains(err.Error(), "--clickhouse-without-keeper") {
		t.Error(err)
	}
}
