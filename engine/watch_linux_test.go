package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
)

// A merge whose writes fail loses no rows: the server is restarted automatically, and
// has the parts from before.
func TestFailedWritesOfAMergeLoseNoRow(t *testing.T) {
	e := startIn(t, t.TempDir())
	conn := connect(t, e.AdminDSN())
	exec(t, conn, "CREATE TABLE plumbline.n (v UInt64) ENGINE = MergeTree ORDER BY v")
	for range 4 { // incompressible: 3.2 kB each
		exec(t, conn, "INSERT INTO plumbline.n SELECT rand64() FROM numbers(400)")
	}
	if seconds := count(t, conn, "SELECT toUInt64(value) FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'"); seconds < 60 {
		t.Errorf("parts that were merged are removed after %d s", seconds)
	}
	const sums = "SELECT sum(v) FROM plumbline.n"
	before := count(t, conn, sums)
	limitFiles(t, e, 8<<10)
	if err := conn.Exec(t.Context(), "OPTIMIZE TABLE plumbline.n FINAL"); err != nil {
		t.Logf("the merge is refused: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Await(ctx, func(s child.State) bool { return s.Ready && s.Restarts > 0 }); err != nil {
		t.Fatal(err)
	}
	if after := count(t, conn, sums); after != before {
		t.Errorf("the sum was %d and is %d", before, after)
	}
}

// limitFiles makes every write of the server fail beyond so many bytes of a file,
// until the server is restarted.
func limitFiles(t *testing.T, e *engine.Engine, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(e.Pid(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// A server does not start without space for its first writes, and refuses every insert that
// would leave too little space for running statements.
func TestRoomIsKeptFree(t *testing.T) {
	disk := durabletest.NewGrowing(t, filepath.Join(t.TempDir(), "engine"), 8)
	if e, err := engine.Start(t.Context(), engine.Config{DataDir: disk.Dir}); err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("on a disk of 8 MiB: %v, error %v", e, err)
	}
	disk.Grow(48)
	conn := connect(t, startIn(t, disk.Dir).AdminDSN())
	exec(t, conn, "CREATE TABLE plumbline.n (v UInt64) ENGINE = MergeTree ORDER BY v")
	refused(t, conn, "INSERT INTO plumbline.n VALUES (1)", notEnoughSpace)
	disk.Grow(256)
	exec(t, conn, "INSERT INTO plumbline.n VALUES (1)")
	if n := count(t, conn, "SELECT count() FROM plumbline.n"); n != 1 {
		t.Errorf("%d rows", n)
	}
}
