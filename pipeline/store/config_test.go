package store

import (
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
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

// What a user's DSN says of settings does not reach an INSERT.
func TestInsertsArePinned(t *testing.T) {
	_, dsn := open(t)
	s := openDSN(t, dsn+"?async_insert=1&optimize_on_insert=1")
	ctx, cancel := s.insertContext(t.Context(), "traces", "", &attempt{})
	defer cancel()
	for setting, want := range map[string]string{"async_insert": "0", "optimize_on_insert": "0", "log_comment": "plumbline/test/default"} {
		var got string
		if err := s.conn.QueryRow(ctx, "SELECT toString(getSetting('"+setting+"'))").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want && (want != "0" || got != "false") {
			t.Errorf("%s is %s", setting, got)
		}
	}
}
