// Package enginetest gives tests a real ClickHouse server.
//
// A test binary has one engine. It starts when the first test needs it and
// stops at the end. A test can create any number of fresh databases on it. A
// package that uses it has in one of its test files:
//
//	func TestMain(m *testing.M) { enginetest.Main(m) }
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
	_ "github.com/plumbline/plumbline/engine/serve" // the library runs in the test binary itself
)

var (
	shared struct {
		sync.Mutex
		dir    string
		engine *engine.Engine
	}
	databases atomic.Int64
)

// Main is a complete TestMain: it runs the tests and exits.
func Main(m *testing.M) { os.Exit(Run(m.Run)) }

// Run dispatches children, calls run and stops the engine if one was started.
// It returns the exit code, for a TestMain with further work.
func Run(run func() int) int {
	child.Dispatch()
	code := run()
	if err := errors.Join(stop(), stopShards()); err != nil {
		fmt.Fprintln(os.Stderr, "enginetest:", err)
		return max(code, 1)
	}
	return code
}

// MainWithoutLeaks is Main, and fails if a goroutine is left after the tests.
func MainWithoutLeaks(m *testing.M) {
	code := Run(m.Run)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Engine returns the engine of this test binary.
func Engine(t testing.TB) *engine.Engine {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil {
		if err := start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return shared.engine
}

// Database creates a fresh database for the test and returns its DSN for the
// administrator. The database is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	return database(t, Engine(t).AdminDSN(), fmt.Sprintf("test_%d", databases.Add(1)))
}

func database(t testing.TB, admin, name string) string {
	t.Helper()
	exec(t.Context(), t, admin, "CREATE DATABASE "+name+" ENGINE = Atomic")
	t.Cleanup(func() { exec(context.Background(), t, admin, "DROP DATABASE "+name+" SYNC") })
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// readyWithin is how long a start may take on a machine that does much else. Alone it takes a second.
const readyWithin = 3 * time.Minute

func start(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "plumbline-engine-")
	if err != nil {
		return err
	}
	e, err := engine.Start(ctx, engine.Config{DataDir: dir, ReadyTimeout: readyWithin})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	shared.dir, shared.engine = dir, e
	return nil
}

func stop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil {
		return nil
	}
	err := shared.engine.Stop(context.Background())
	return errors.Join(err, os.RemoveAll(shared.dir))
}

func exec(ctx context.Context, t testing.TB, dsn, statement string) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close()
	if err := conn.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}
