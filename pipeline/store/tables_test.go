package store_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// The tests of pipeline/tables are here because a database needs a server, which the tests of
// this package already run.

// A stage refuses a database that is below the durability requirement, unless it is configured to
// accept it.
func TestStageRefusesAWeakDatabase(t *testing.T) {
	dsn := enginetest.Database(t)
	if err := database.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	common := config.DefaultCommon("")
	env := service.NewEnv("test", "", slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry(), new(obs.Health))
	_, err := tables.Open(t.Context(), &common, &config.ClickHouse{DSN: dsn}, env)
	if _, weak := errors.AsType[database.Weakness](err); !weak || !strings.Contains(err.Error(), "right to TRUNCATE") {
		t.Errorf("an administrator's database: %v", err)
	}
	s, err := tables.Open(t.Context(), &common, &config.ClickHouse{DSN: dsn, AllowUnsafe: true}, env)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "right to TRUNCATE") {
		t.Errorf("the weakness is not logged: %s", log.String())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A service refuses a cluster that its server does not know.
func TestStageOnAnUnknownCluster(t *testing.T) {
	dsn := enginetest.Migrated(t, database.Migrate)
	env := service.NewEnv("test", "0", slog.New(slog.DiscardHandler), prometheus.NewRegistry(), &obs.Health{})
	_, err := tables.Open(t.Context(), &config.Common{Tenant: "default"}, &config.ClickHouse{DSN: dsn, Cluster: "nobody"}, env)
	if err == nil || !strings.Contains(err.Error(), "cluster nobody: existence is missing") || !strings.Contains(err.Error(), "correct --clickhouse-cluster") {
		t.Error(err)
	}
}
