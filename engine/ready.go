package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// predecessorGrace is how long the server of a killed parent may take to release the data
// directory.
const predecessorGrace = 20 * time.Second

// awaitPredecessor waits until no server holds the data: after a kill -9 of its
// parent, the previous server may still be shutting down.
func (e *Engine) awaitPredecessor() error {
	ctx, cancel := context.WithTimeout(context.Background(), predecessorGrace)
	defer cancel()
	status := filepath.Join(e.settings.Dir, "data", "status") // locked by a running server
	if _, err := os.Stat(status); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := durable.Await(ctx, status, "") // the contents are the server's
	if err != nil {
		return fmt.Errorf("another ClickHouse server uses %s: %w", e.settings.Dir, err)
	}
	return lock.Release()
}

// answers is the readiness check of the child: the native port, which opens last, accepts
// the generated password.
func (e *Engine) answers(ctx context.Context) error {
	conn, err := e.connect("")
	if err != nil {
		return backoff.Permanent(err)
	}
	defer conn.Close()
	notYet := conn.Ping(ctx)
	if notYet == nil {
		return nil
	}
	if refusal := e.refusal(); refusal != nil {
		return backoff.Permanent(refusal)
	}
	return notYet
}

var refusalPattern = regexp.MustCompile(`(?m)^Received exception:\s+(.+)$`)

// refusal returns the error of a session that could not open its listeners. Such a session
// prints the error and keeps running, so waiting longer would not help.
func (e *Engine) refusal() error {
	output, err := os.ReadFile(filepath.Join(e.settings.Dir, outputName))
	if err != nil {
		return err
	}
	if m := refusalPattern.FindSubmatch(output); m != nil {
		return fmt.Errorf("the server cannot listen: %s", m[1])
	}
	return nil
}
