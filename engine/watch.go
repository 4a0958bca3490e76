package engine

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// keepFree is the disk space that inserts and merges must leave free. Statements that are
	// running need it when other programs fill the disk.
	keepFree = 64 << 20
	// roomToStart is the disk space that must be free before a server is started.
	roomToStart = keepFree / 4

	// watchEvery is how often watch asks the library for failed writes. Each question costs it some
	// milliseconds of CPU.
	watchEvery = 5 * time.Second
	// watchPatience bounds one such query.
	watchPatience = 2 * time.Second
)

// prepare returns an error when the server's first writes would fail.
// It waits until no other server uses the data.
func (e *Engine) prepare() error {
	free, _, err := durable.Space(e.settings.Dir)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if free < roomToStart {
		return fmt.Errorf("engine: the disk of %s has %d bytes free, and the server needs %d to start: free some space", e.settings.Dir, free, int64(roomToStart))
	}
	return e.awaitPredecessor()
}

// watch kills the library when one of its writes has failed, until ctx ends. The supervisor
// restarts it when there is room.
//
// A ClickHouse server reports an error for a statement whose write failed. The library
// ignores the failure: it commits parts of inserts and merges whose files are empty,
// reports success, and later removes the source parts of the merge (old_parts_lifetime).
// But it counts these failures. A starting server checks every part: it detaches an
// incomplete part and restores the source parts of an incomplete merge. After an insert,
// the store checks the same count (store.ErrUnwritten).
func (e *Engine) watch(ctx context.Context) {
	conn, err := e.connect("")
	if err != nil {
		e.log.Error("failed writes are not monitored", "error", err)
		return
	}
	defer conn.Close()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pid := e.Pid()
		failed, err := failedWrites(ctx, conn)
		if err != nil || failed == 0 || pid == 0 { // it hangs or is starting: readiness and the supervisor report that
			continue
		}
		e.log.Error("the engine could not write to its disk; restarting it, so it detaches incomplete parts", "writes", failed, "pid", pid)
		process, err := os.FindProcess(pid)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			e.log.Error("cannot kill the engine", "error", err)
		}
	}
}

// failedWrites returns how many writes have failed since the server started.
func failedWrites(ctx context.Context, conn driver.Conn) (failed uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT sum(value) FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'").Scan(&failed)
	return failed, err
}
