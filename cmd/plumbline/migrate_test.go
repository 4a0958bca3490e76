package main

import (
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// The compose file passes the database in a variable, and may run the command again.
func TestMigrateByVariable(t *testing.T) {
	dsn := enginetest.Database(t)
	t.Setenv("PLUMBLINE_CLICKHOUSE_DSN", dsn)
	for range 2 {
		if code := execute([]string{"migrate"}); code != exitGood {
			t.Fatalf("exit code is %d", code)
		}
	}
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// migrate creates the broker's streams if the services may not.
func TestMigrateMakesStreams(t *testing.T) {
	broker, dsn := brokertest.New(t), enginetest.Database(t)
	for range 2 {
		if code := execute([]string{"migrate", "--clickhouse-dsn", dsn, "--nats-url", broker.URL()}); code != exitGood {
			t.Fatalf("exit code is %d", code)
		}
	}
	client, err := stream.Connect(t.Context(), stream.Config{URL: broker.URL(), MonitorURL: broker.MonitorURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if report, err := client.Inspect(t.Context()); err != nil || report.Err() != nil {
		t.Errorf("error %v, report %v", err, report.Err())
	}
}

func TestMigrateReportsFaults(t *testing.T) {
	if code := execute([]string{"migrate", "--clickhouse-dsn", enginetest.Engine(t).AdminDSN(), "--clickhouse-cluster", "nobody"}); code != exitBad {
		t.Errorf("a cluster that the server does not know: exit code is %d", code)
	}
	if code := execute([]string{"migrate", "--clickhouse-dsn", "http://127.0.0.1:1/plumbline"}); code == exitGood {
		t.Error("an address without a database was migrated")
	}
}
