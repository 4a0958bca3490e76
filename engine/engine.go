// Package engine runs a real ClickHouse server on loopback, as a child process
// of this one, and returns the addresses to connect to.
//
// It owns the server's program (located, or installed once into the user's cache
// with a pinned version and checksum), its configuration, its users and
// their generated passwords, its ports and its life. It owns no table. Clients
// connect with clickhouse-go over a DSN, as to any other ClickHouse server.
//
// Invariants: a data directory has one engine; nothing listens beyond loopback,
// and every connection needs a password; ports and passwords stay the same when
// the server crashes and is restarted; memory stays below a stated bound; no user of
// the pipeline's services may alter or delete a row; a server whose writes failed is
// restarted before it can remove source parts whose merged copy was not written.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine/protocol"
	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// outputName is the file in the data directory that receives the server's output.
	outputName = "engine.out"
	// portAttempts is how often a first start tries. It chooses other ports when another
	// process took one before the server's bind.
	portAttempts = 3
	// stopGrace exceeds the 5 s that the server waits for open connections.
	stopGrace = 15 * time.Second
)

// Engine is a running, supervised ClickHouse server. After a crash it is
// restarted on the same ports with the same users.
type Engine struct {
	*child.Process
	settings  settings
	passwords passwords
	lock      *durable.Lock
	log       *slog.Logger

	watching sync.WaitGroup
	unwatch  context.CancelFunc
}

// Start runs the server and returns when it accepts queries and the database plumbline
// exists. ctx bounds the start only.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cfg.Program == (Program{}) {
		var err error
		if cfg.Program, err = Locate(ctx, cfg.Options); err != nil {
			return nil, err
		}
	}
	e, err := open(cfg)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, e.lock.Release())
	}
	if err := e.createDatabase(ctx); err != nil {
		return nil, errors.Join(err, e.Stop(ctx))
	}
	if cfg.Program.Library != "" {
		ctx, unwatch := context.WithCancel(context.Background())
		e.unwatch = unwatch
		e.watching.Go(func() { e.watch(ctx) })
	}
	return e, nil
}

// open locks and prepares the data directory.
func open(cfg Config) (*Engine, error) {
	dir := cfg.DataDir
	if err := durable.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return nil, fmt.Errorf("engine: data directory: %w", err)
	}
	lock, err := durable.Acquire(filepath.Join(dir, "lock"), "engine")
	if err != nil {
		return nil, fmt.Errorf("engine: data directory: %w", err)
	}
	pw, err := loadPasswords(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("engine: %w", err), lock.Release())
	}
	return &Engine{lock: lock, passwords: pw, log: cfg.Logger, unwatch: func() {}, settings: settings{
		Dir:         dir,
		MemoryBytes: cfg.MemoryBytes,
		CacheBytes:  cfg.MemoryBytes / 16,
		QueryBytes:  cfg.MemoryBytes / 4 * 3,
		SpillBytes:  cfg.MemoryBytes / 4,
		KeepFree:    keepFree,
		OwnSession:  cfg.Program.Library != "",
		Users:       pw.users(),
	}}, nil
}

func (e *Engine) start(ctx context.Context, cfg Config) error {
	if err := e.awaitPredecessor(); err != nil { // whose ports are free then
		return err
	}
	for attempt := 1; ; attempt++ {
		if err := e.settings.choosePorts(cfg, attempt); err != nil {
			return err
		}
		if err := e.settings.write(); err != nil {
			return err
		}
		process, err := child.Start(ctx, e.childConfig(cfg))
		if err == nil {
			e.Process = process
			return nil
		}
		taken := errors.Is(err, child.ErrPortTaken) || strings.Contains(err.Error(), "Address already in use")
		if attempt == portAttempts || !taken {
			return explainHost(err, cfg.Program.Host)
		}
	}
}

func (e *Engine) childConfig(cfg Config) child.Config {
	c := child.Config{
		Name: "engine",
		// The library takes the time zone only from here. XDG_STATE_HOME keeps the history of
		// statements out of the user's home. Without the watchdog, the official server runs in the
		// supervised process itself, not in a child of it.
		Env:          []string{"TZ=UTC", "XDG_STATE_HOME=" + e.settings.Dir, "CLICKHOUSE_WATCHDOG_ENABLE=0"},
		Dir:          e.settings.Dir,
		Output:       filepath.Join(e.settings.Dir, outputName),
		Prepare:      e.prepare,
		Listens:      []child.Address{{Host: "127.0.0.1", Port: e.settings.NativePort}, {Host: "127.0.0.1", Port: e.settings.HTTPPort}},
		Ready:        e.answers,
		ReadyTimeout: cfg.ReadyTimeout,
		Grace:        stopGrace,
		Logger:       cfg.Logger,
	}
	if cfg.Program.Binary != "" {
		c.Command = cfg.Program.Binary
		c.Args = []string{"server", "--config-file=" + filepath.Join(e.settings.Dir, "config.xml")}
		return c
	}
	c.Self, c.Program = protocol.Child, cfg.Program.Host
	c.Args = protocol.Arguments{Library: cfg.Program.Library, Dir: e.settings.Dir}.Words()
	return c
}

func (e *Engine) createDatabase(ctx context.Context) error {
	conn, err := e.connect("")
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+Database+" ENGINE = Atomic"); err != nil {
		return fmt.Errorf("engine: create the database: %w", err)
	}
	return nil
}

func (e *Engine) connect(database string) (driver.Conn, error) {
	opts, err := clickhouse.ParseDSN(e.passwords.dsn(adminUser, e.settings.NativePort, database))
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return clickhouse.Open(opts)
}

// AdminDSN returns the DSN of the user who may do everything, in every database.
func (e *Engine) AdminDSN() string { return e.dsn(adminUser) }

// ServiceDSN returns the DSN of the user who may read and insert in plumbline, and nothing else.
func (e *Engine) ServiceDSN() string { return e.dsn(serviceUser) }

// OperatorDSN returns the DSN of the user who may read plumbline, including the bytes of dead letters.
func (e *Engine) OperatorDSN() string { return e.dsn(operatorUser) }

// ReaderDSN returns the DSN of the user who may read plumbline, except the bytes of dead letters.
func (e *Engine) ReaderDSN() string { return e.dsn(readerUser) }

func (e *Engine) dsn(user string) string {
	return e.passwords.dsn(user, e.settings.NativePort, Database)
}

// HTTPAddr returns host:port of ClickHouse's HTTP interface.
func (e *Engine) HTTPAddr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(e.settings.HTTPPort))
}

// Stop ends the server and releases the data directory. Close connection
// pools first: the server waits up to 5 s for open connections.
func (e *Engine) Stop(ctx context.Context) error {
	e.unwatch()
	e.watching.Wait()
	err := e.Process.Stop(ctx)
	if closing := e.lock.Release(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}
