package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.MainWithoutLeaks(m) }

func open(dsn string) (driver.Conn, error) {
	opts, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return clickhouse.Open(opts)
}

func connect(t *testing.T, dsn string) driver.Conn {
	t.Helper()
	conn, err := open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func exec(t *testing.T, conn driver.Conn, statement string) {
	t.Helper()
	if err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, conn driver.Conn, query string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// refused requires that the statement fails with ClickHouse's error code.
func refused(t *testing.T, conn driver.Conn, statement string, code int32) {
	t.Helper()
	err := conn.Exec(t.Context(), statement)
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) || exception.Code != code {
		t.Errorf("%s: want error %d, got %v", statement, code, err)
	}
}

const (
	accessDenied   = 497
	memoryExceeded = 241
	notEnoughSpace = 243
	authFailed     = 516
	sessionLimit   = 700
)

func startIn(t *testing.T, dir string) *engine.Engine {
	t.Helper()
	return start(t, engine.Config{DataDir: dir})
}

func start(t *testing.T, cfg engine.Config) *engine.Engine {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	e, err := engine.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestInsertAndSelect(t *testing.T) {
	conn := connect(t, enginetest.Database(t))
	exec(t, conn, "CREATE TABLE n (v UInt64, at DateTime64(9, 'UTC')) ENGINE = MergeTree ORDER BY v")
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO n")
	if err != nil {
		t.Fatal(err)
	}
	for v := range uint64(1000) {
		if err := batch.Append(v, time.Unix(int64(v), 123)); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	if sum := count(t, conn, "SELECT sum(v) FROM n"); sum != 499500 {
		t.Errorf("the sum of 0..999 is %d", sum)
	}
	var zone string
	if err := conn.QueryRow(t.Context(), "SELECT timezone()").Scan(&zone); err != nil || zone != "UTC" {
		t.Errorf("the server's time zone is %q, error %v", zone, err)
	}
	if n := count(t, conn, "SELECT count() FROM system.settings WHERE name = 'async_insert' AND value = '0'"); n != 1 {
		t.Error("async_insert is not off")
	}
}

func TestDatabasesAreSeparate(t *testing.T) {
	one, two := connect(t, enginetest.Database(t)), connect(t, enginetest.Database(t))
	exec(t, one, "CREATE TABLE mine (v UInt8) ENGINE = Memory")
	if n := count(t, two, "SELECT count() FROM system.tables WHERE database = currentDatabase()"); n != 0 {
		t.Errorf("a fresh database has %d tables", n)
	}
}

func TestRestartKeepsDataPortsAndPasswords(t *testing.T) {
	dir := t.TempDir()
	first := startIn(t, dir)
	conn := connect(t, first.AdminDSN())
	exec(t, conn, "CREATE TABLE kept (v UInt64) ENGINE = MergeTree ORDER BY v")
	exec(t, conn, "INSERT INTO kept SELECT number FROM numbers(100)")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := startIn(t, dir)
	if n := count(t, connect(t, second.ReaderDSN()), "SELECT count() FROM kept"); n != 100 {
		t.Errorf("%d rows of 100 after a restart", n)
	}
	if first.ReaderDSN() != second.ReaderDSN() || first.HTTPAddr() != second.HTTPAddr() {
		t.Errorf("a restart changed %s to %s, or %s to %s: a dashboard cannot connect any more",
			first.ReaderDSN(), second.ReaderDSN(), first.HTTPAddr(), second.HTTPAddr())
	}
}

func TestKilledServerComesBackOnItsPorts(t *testing.T) {
	e := startIn(t, t.TempDir())
	conn := connect(t, e.AdminDSN())
	exec(t, conn, "CREATE TABLE kept (v UInt64) ENGINE = MergeTree ORDER BY v")
	for restarts := 1; restarts <= 2; restarts++ {
		exec(t, conn, "INSERT INTO kept SELECT number FROM numbers(100)")
		kill(t, e, restarts)
		again := connect(t, e.AdminDSN()) // the DSN, and so the port, is unchanged
		if n, want := count(t, again, "SELECT count() FROM kept"), uint64(restarts*100); n != want {
			t.Errorf("%d rows of %d after kill -9", n, want)
		}
		conn = again
	}
}

// kill kills the server and waits until the supervisor has restarted it.
func kill(t *testing.T, e *engine.Engine, restarts int) {
	t.Helper()
	if err := syscall.Kill(e.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	back := func(s child.State) bool { return s.Ready && s.Restarts == restarts }
	if err := e.Await(t.Context(), back); err != nil {
		t.Fatal(err)
	}
}

func TestSecondUserOfADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	startIn(t, dir)
	_, err := engine.Start(t.Context(), engine.Config{DataDir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second engine in %s: error %v", dir, err)
	}
}

func TestPortInUseIsAnErrorThatNamesIt(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{DataDir: t.TempDir(), HTTPPort: taken.Addr().(*net.TCPAddr).Port}
	if _, err := engine.Start(t.Context(), cfg); !errors.Is(err, child.ErrPortTaken) || !strings.Contains(err.Error(), "127.0.0.1:"+port) {
		t.Errorf("start on a port in use: error %v", err)
	}
}

func TestGarbageOnThePortsIsSurvived(t *testing.T) {
	e := startIn(t, t.TempDir())
	conn := connect(t, e.AdminDSN())
	u, err := url.Parse(e.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		for _, address := range []string{u.Host, e.HTTPAddr()} {
			sendGarbage(t, address)
		}
	}
	if n := count(t, conn, "SELECT 1::UInt64"); n != 1 || e.State().Restarts != 0 {
		t.Errorf("after garbage: answer %d, %d restarts", n, e.State().Restarts)
	}
}

func sendGarbage(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	garbage := make([]byte, 4096)
	rand.Read(garbage)
	// The server may close the connection during the write; a reset is part of the test.
	if _, err := c.Write(garbage); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	e := start(t, engine.Config{DataDir: t.TempDir(), MemoryBytes: 512 << 20})
	conn := connect(t, e.AdminDSN())
	refused(t, conn, "SELECT ignore(groupArray(number)) FROM numbers(200000000)", memoryExceeded)
	// A user's setting must not raise the limit of the whole server.
	refused(t, conn, "SELECT ignore(groupArray(number)) FROM numbers(200000000) SETTINGS max_memory_usage = 0", memoryExceeded)
	if n := count(t, conn, "SELECT count() FROM numbers(10)"); n != 10 || e.State().Restarts != 0 {
		t.Errorf("after the refusal: answer %d, %d restarts", n, e.State().Restarts)
	}
}

func TestMemoryBelowTheMinimumIsRefused(t *testing.T) {
	_, err := engine.Start(t.Context(), engine.Config{DataDir: t.TempDir(), MemoryBytes: 1})
	if err == nil || !strings.Contains(err.Error(), "MemoryBytes") {
		t.Errorf("an engine in one byte: error %v", err)
	}
}

func TestSecretsAreReadableByTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	startIn(t, dir)
	for _, name := range []string{"config.xml", "users.xml", "passwords.json", "engine.out"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
}
