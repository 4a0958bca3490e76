package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// keepFree is what inserts and merges leave of the disk: room for what runs already,
	// while others fill it.
	keepFree = 64 << 20
	// roomToStart is what must be free before a server is started.
	roomToStart = keepFree / 4

	// watchEvery is how often the library is asked for writes that failed.
	watchEvery = time.Second
	// watchPatience bounds one such question.
	watchPatience = 2 * time.Second
)

// prepare refuses to start a server whose first writes would fail or whose ports are taken,
// and waits until no other has the data.
func (e *Engine) prepare() error {
	free, _, err := durable.Space(e.settings.Dir)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if free < roomToStart {
		return fmt.Errorf("engine: the disk of %s has %d bytes free, %d are needed to start: make room", e.settings.Dir, free, int64(roomToStart))
	}
	if err := e.awaitPredecessor(); err != nil {
		return err
	}
	return errors.Join(child.PortFree("127.0.0.1", e.settings.NativePort), child.PortFree("127.0.0.1", e.settings.HTTPPort))
}

// watch kills the library when one of its writes has failed, until ctx ends. The supervisor
// starts it again when there is room.
//
// A ClickHouse server answers a statement whose write failed with an error. The library
// ignores the failure: it commits parts whose files are empty, of inserts and of merges,
// answers that all is well, and later removes the parts that it merged (old_parts_lifetime).
// But it counts these failures. A server that starts looks at every part: it detaches one that
// is not whole, and takes back those that were merged into it. Whoever inserts looks at the
// same count (store.ErrUnwritten).
func (e *Engine) watch(ctx context.Context) {
	conn, err := e.connect("")
	if err != nil {
		e.log.Error("writes that fail are not watched", "error", err)
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
		if err != nil || failed == 0 || pid == 0 { // it hangs or is being started: others say so
			continue
		}
		e.log.Error("the engine could not write to its disk, and is started again, which detaches what it wrote in part", "writes", failed, "pid", pid)
		if err := kill(pid); err != nil {
			e.log.Error("the engine cannot be killed", "error", err)
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

func kill(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}
