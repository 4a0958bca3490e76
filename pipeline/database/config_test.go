package database

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

func TestConfigReportsEveryFault(t *testing.T) {
	_, err := Open(Config{InsertTimeout: time.Millisecond, QueryTimeout: time.Nanosecond, Connections: 1})
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
		_, err := Open(Config{DSN: dsn})
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

// The connection to the database uses TLS 1.3 at least, and the server's certificate is verified.
// A server that requires a client's certificate gets the one that the DSN names. Both hold for
// services and for migrations. The engine has no TLS; a TLS server in front of it provides it.
func TestTLS13IsTheLeast(t *testing.T) {
	authority, stranger := transporttest.New(t), transporttest.New(t)
	dsn := enginetest.Migrated(t, Migrate)
	mutual := authority.Server(0)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, authority.Roots
	ca := "&ca_file=" + authority.CAFile
	for name, c := range map[string]struct {
		server *tls.Config
		files  string
		taken  bool
		why    string // reason in the error
	}{
		"TLS 1.3":                      {authority.Server(0), ca, true, ""},
		"TLS 1.2":                      {authority.Server(tls.VersionTLS12), ca, false, "protocol version"},
		"an unknown authority":         {authority.Server(0), "", false, "unknown authority"},
		"mTLS":                         {mutual, ca + pairOf(authority), true, ""},
		"mTLS, no client's pair":       {mutual, ca, false, ""},
		"mTLS, the pair of a stranger": {mutual, ca + pairOf(stranger), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			encrypted := over(t, dsn, c.server) + "?secure=true" + c.files
			for who, err := range map[string]error{
				"a service":   openDSN(t, encrypted).Ready(t.Context()),
				"a migration": Migrate(t.Context(), encrypted), // it has nothing to do
			} {
				if (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), c.why) {
					t.Errorf("%s: %v, want it accepted: %v %s", who, err, c.taken, c.why)
				}
			}
		})
	}
}

// pairOf returns the DSN parameters for a client's certificate and key.
func pairOf(a *transporttest.Authority) string {
	return "&cert_file=" + a.CertFile + "&key_file=" + a.KeyFile
}

// over runs a TLS server in front of a database, and returns the database's DSN with the server's
// address.
func over(t *testing.T, dsn string, cfg *tls.Config) string {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	database := at.Host
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { relay(t.Context(), client.(*tls.Conn), database) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	at.Host = listener.Addr().String()
	return at.String()
}

// relay forwards what each side sends once the handshake has succeeded.
func relay(ctx context.Context, client *tls.Conn, to string) {
	defer client.Close()
	if client.HandshakeContext(ctx) != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
	<-ended
}

// The files in a DSN are read before any connection is made. Their names are not sent to the
// server as settings.
func TestTLSFilesAreChecked(t *testing.T) {
	authority := transporttest.New(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"ca_file=" + authority.CAFile:                                                  "secure=true",
		"secure=true&ca_file=" + none:                                                  "no certificate",
		"secure=true&ca_file=" + none + ".gone":                                        "no such file",
		"secure=true&cert_file=" + authority.CertFile:                                  "together",
		"secure=true&cert_file=" + none + "&key_file=" + authority.KeyFile:             "cert_file and key_file",
		"secure=true&cert_file=" + authority.CertFile + "&key_file=" + none + ".gone":  "cert_file and key_file",
		"secure=true&key_file=" + authority.KeyFile + "&ca_file=" + authority.CertFile: "together",
	} {
		if _, err := parseDSN("clickhouse://app:secret@10.0.0.1:9440/db?" + query); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	o, err := parseDSN("clickhouse://10.0.0.1:9440/db?secure=true&max_threads=1&ca_file=" + authority.CAFile + "&cert_file=" + authority.CertFile + "&key_file=" + authority.KeyFile)
	if err != nil || len(o.Settings) != 1 || o.TLS.MinVersion != tls.VersionTLS13 || len(o.TLS.Certificates) != 1 || o.TLS.RootCAs == nil {
		t.Errorf("options are %+v, %v", o, err)
	}
}

// Settings in a user's DSN do not affect an INSERT.
func TestInsertsArePinned(t *testing.T) {
	_, dsn := open(t)
	d := openDSN(t, dsn+"?async_insert=1&optimize_on_insert=1&insert_distributed_sync=0&insert_quorum=0")
	for _, c := range []struct {
		table   string
		rows    int
		indexes string
	}{{"traces", granuleRows, "0"}, {"traces", granuleRows + 1, "1"}, {refined, 1, "1"}} {
		ctx, cancel := d.insertContext(t.Context(), c.table, c.rows, "", func([]clickhouse.ProfileEvent) {})
		arePinned(t, d, ctx, map[string]string{
			"async_insert": "0", "optimize_on_insert": "0", "insert_distributed_sync": "1", "insert_quorum": "auto", "log_comment": "plumbline/test/default",
			"materialize_skip_indexes_on_insert": c.indexes,
		})
		cancel()
	}
}

// They do not affect a reading query either.
func TestReadsArePinned(t *testing.T) {
	_, dsn := open(t)
	d := openDSN(t, dsn+"?do_not_merge_across_partitions_select_final=1&skip_unavailable_shards=1&fallback_to_stale_replicas_for_distributed_queries=1")
	ctx, cancel := d.ReadContext(t.Context())
	defer cancel()
	arePinned(t, d, ctx, map[string]string{
		"do_not_merge_across_partitions_select_final": "0", "skip_unavailable_shards": "0",
		"fallback_to_stale_replicas_for_distributed_queries": "0", "log_comment": "plumbline/test/default",
	})
}

// arePinned checks the values that the settings have in the server during a statement.
func arePinned(t *testing.T, d *DB, ctx context.Context, settings map[string]string) {
	t.Helper()
	for setting, want := range settings {
		var got string
		if err := d.QueryRow(ctx, "SELECT toString(getSetting('"+setting+"'))").Scan(&got); err != nil {
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
