package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestConfigReportsEveryFault(t *testing.T) {
	_, err := Open(t.Context(), Config{InsertTimeout: time.Millisecond, QueryTimeout: time.Nanosecond, Connections: 1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, key := range []string{"clickhouse.dsn", "clickhouse.insert_timeout", "clickhouse.query_timeout", "clickhouse.connections"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not named: %v", key, err)
		}
	}
}

func TestDSNFaultsKeepThePassword(t *testing.T) {
	for _, dsn := range []string{
		"clickhouse://app:secret@host:port/db", "://app:secret@host", "http://app:secret@host:8123/db", "clickhouse://app:secret@",
		"clickhouse://app:secret@host:9000/db?dial_timeout=never",
	} {
		_, err := Open(t.Context(), Config{DSN: dsn})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", strings.Replace(dsn, "secret", "…", 1), err)
		}
	}
}

func TestCompressionIsForTheNetwork(t *testing.T) {
	for dsn, want := range map[string]clickhouse.CompressionMethod{
		"clickhouse://127.0.0.1:9000/db":                        clickhouse.CompressionNone,
		"clickhouse://[::1]:9000/db":                            clickhouse.CompressionNone,
		"clickhouse://localhost:9000/db":                        clickhouse.CompressionNone,
		"clickhouse://clickhouse:9000/db":                       clickhouse.CompressionLZ4,
		"clickhouse://127.0.0.1:9000,10.0.0.1:9000/db":          clickhouse.CompressionLZ4,
		"clickhouse://10.0.0.1:9000/db?compress=zstd":           clickhouse.CompressionZSTD,
		"clickhouse://127.0.0.1:9000/db?compress=true":          clickhouse.CompressionLZ4,
		"clickhouse://clickhouse:9000/db?async_insert=1&secure": clickhouse.CompressionLZ4,
	} {
		o, err := parseDSN(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if o.Compression.Method != want {
			t.Errorf("%s: compression %v, want %v", dsn, o.Compression.Method, want)
		}
	}
}

// openPinned opens the database of open with a DSN that contains the user's own settings.
func openPinned(t testing.TB, dsn, settings string) *Store {
	t.Helper()
	cfg := Config{DSN: dsn + "?" + settings, Stage: "test"}
	if onShards {
		cfg.Cluster = enginetest.Cluster
	}
	return openConfig(t, cfg)
}

// Settings in a user's DSN do not affect an INSERT.
func TestInsertsArePinned(t *testing.T) {
	_, dsn := open(t)
	s := openPinned(t, dsn, "async_insert=1&optimize_on_insert=1&insert_distributed_sync=0&insert_quorum=0")
	ctx, cancel := s.insertContext(t.Context(), "traces", "", &attempt{})
	defer cancel()
	arePinned(t, s, ctx, map[string]string{
		"async_insert": "0", "optimize_on_insert": "0", "insert_distributed_sync": "1", "insert_quorum": "auto", "log_comment": "plumbline/test/default",
	})
}

// They do not affect a reading query either.
func TestReadsArePinned(t *testing.T) {
	_, dsn := open(t)
	s := openPinned(t, dsn, "do_not_merge_across_partitions_select_final=1&skip_unavailable_shards=1&fallback_to_stale_replicas_for_distributed_queries=1")
	ctx, cancel := s.readContext(t.Context())
	defer cancel()
	arePinned(t, s, ctx, map[string]string{
		"do_not_merge_across_partitions_select_final": "0", "skip_unavailable_shards": "0",
		"fallback_to_stale_replicas_for_distributed_queries": "0", "log_comment": "plumbline/test/default",
	})
}

// arePinned checks the values that the settings have in the server during a statement.
func arePinned(t *testing.T, s *Store, ctx context.Context, settings map[string]string) {
	t.Helper()
	for setting, want := range settings {
		var got string
		if err := s.conn.QueryRow(ctx, "SELECT toString(getSetting('"+setting+"'))").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if number, isBool := map[string]string{"false": "0", "true": "1"}[got]; isBool {
			got = number
		}
		if got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
