package enginetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
)

// Cluster is the name of the cluster in the configuration of the engines of Shards.
const Cluster = "plumbline_test"

const shardCount = 2

// Sharded reports whether tests must run on Shards where they can (make shards).
func Sharded() bool { return os.Getenv("PLUMBLINE_TEST_SHARDS") != "" }

var shards struct {
	sync.Mutex
	dir      string
	engines  []*engine.Engine
	migrated bool
}

// Shards returns the two engines of this test binary. They are the shards of one cluster,
// one server each, without Keeper. Their users have the same passwords.
func Shards(t testing.TB) []*engine.Engine {
	t.Helper()
	shards.Lock()
	defer shards.Unlock()
	if len(shards.engines) > 0 {
		return shards.engines
	}
	var err error
	if shards.dir, err = os.MkdirTemp("", "plumbline-shards-"); err != nil {
		t.Fatal(err)
	}
	if shards.engines, err = startShards(t.Context(), shards.dir); err != nil {
		t.Fatal(err)
	}
	return shards.engines
}

// MigratedOnce returns the administrator's DSNs, one for each shard, of the database in which
// services have privileges. The first call makes its tables with migrate. All tests share it.
func MigratedOnce(t testing.TB, migrate func(ctx context.Context, adminDSN string) error) (dsns []string) {
	t.Helper()
	engines := Shards(t)
	shards.Lock()
	defer shards.Unlock()
	for _, e := range engines {
		if !shards.migrated {
			if err := migrate(t.Context(), e.AdminDSN()); err != nil {
				t.Fatal(err)
			}
		}
		dsns = append(dsns, e.AdminDSN())
	}
	shards.migrated = true
	return dsns
}

// NewShards starts engines like those of Shards, for one test; they stop when it ends.
func NewShards(t testing.TB) []*engine.Engine {
	t.Helper()
	engines, err := startShards(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopAll(engines); err != nil {
			t.Error(err)
		}
	})
	return engines
}

// ShardedDatabase creates a fresh database on every shard and returns their DSNs for the
// administrator. The databases are dropped when the test ends.
func ShardedDatabase(t testing.TB) []string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	var dsns []string
	for _, e := range Shards(t) {
		dsns = append(dsns, database(t, e.AdminDSN(), name))
	}
	return dsns
}

// startShards tries again when another process took a port that was free.
func startShards(ctx context.Context, below string) (engines []*engine.Engine, err error) {
	for attempt := range 3 {
		if engines, err = tryShards(ctx, filepath.Join(below, fmt.Sprint(attempt))); err == nil {
			return engines, nil
		}
		err = errors.Join(err, stopAll(engines))
	}
	return nil, err
}

// tryShards returns the engines that started, also after an error.
func tryShards(ctx context.Context, below string) (engines []*engine.Engine, err error) {
	ports := make([]int, shardCount)
	for i := range ports {
		if ports[i], err = child.FreePort("127.0.0.1", 0); err != nil {
			return nil, err
		}
	}
	users := map[string]string{}
	for _, user := range []string{"admin", "service", "operator", "reader"} {
		users[user] = rand.Text()
	}
	passwords, err := json.Marshal(users)
	if err != nil {
		return engines, err
	}
	for i, port := range ports {
		dir := filepath.Join(below, fmt.Sprint(i))
		err := os.MkdirAll(filepath.Join(dir, "config.d"), 0o700)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "passwords.json"), passwords, 0o600))
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "config.d", "cluster.xml"), []byte(remoteServers(ports, users["admin"])), 0o600))
		if err != nil {
			return engines, err
		}
		e, err := engine.Start(ctx, engine.Config{DataDir: dir, NativePort: port})
		if err != nil {
			return engines, err
		}
		engines = append(engines, e)
	}
	return engines, nil
}

func stopShards() error {
	shards.Lock()
	defer shards.Unlock()
	err := stopAll(shards.engines)
	if shards.dir != "" {
		err = errors.Join(err, os.RemoveAll(shards.dir))
	}
	return err
}

func stopAll(engines []*engine.Engine) error {
	var faults []error
	for _, e := range engines {
		faults = append(faults, e.Stop(context.Background()))
	}
	return errors.Join(faults...)
}

// remoteServers returns the part of the engines' configuration that makes them a cluster.
// With the cluster's secret, a shard executes a query with the rights of its initial user.
func remoteServers(ports []int, secret string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<clickhouse><remote_servers><%s><secret>%s</secret>\n", Cluster, secret)
	for _, port := range ports {
		fmt.Fprintf(&b, "<shard><internal_replication>true</internal_replication><replica><host>127.0.0.1</host><port>%d</port></replica></shard>\n", port)
	}
	fmt.Fprintf(&b, "</%s></remote_servers></clickhouse>\n", Cluster)
	return b.String()
}
