package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Func is the body of a child that is this binary. It works until ctx ends: when the
// parent requests the end, when the parent is gone, and on SIGTERM or SIGINT. If it returns
// an error, the child prints it and exits with status 1.
type Func func(ctx context.Context, args []string) error

const (
	// hiddenWord is the first argument that turns this binary into a child.
	hiddenWord = "__child"
	// orphanFD is the read end of the pipe whose other end is open in the
	// parent: it reads end-of-file when the parent stops the child or dies.
	orphanFD = 3
	// lastResort bounds a clean end that no parent supervises any more.
	lastResort = 30 * time.Second
)

var (
	registry   = map[string]Func{}
	dispatched bool
)

// A child keeps the main thread: foreign code that it loads may expect the main thread's
// stack and signals.
func init() {
	if isChild() {
		runtime.LockOSThread()
	}
}

// Register names a function that Start can run in a child. Call it in a package's init.
// It panics when a name is registered twice.
func Register(name string, run Func) {
	if _, taken := registry[name]; taken {
		panic("child: " + name + " is registered twice")
	}
	registry[name] = run
}

// Registered reports whether this binary has a function of that name.
func Registered(name string) bool { return registry[name] != nil }

func unregistered(name string) error {
	return fmt.Errorf("child: no function is registered as %q", name)
}

// Dispatch must be the first call of main and TestMain. In a child it runs
// the registered function and exits; in any other process it returns at once.
func Dispatch() {
	dispatched = true
	if !isChild() {
		return
	}
	if err := runChild(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func isChild() bool { return len(os.Args) > 2 && os.Args[1] == hiddenWord }

func runChild(name string, args []string) error {
	run, ok := registry[name]
	if !ok {
		return unregistered(name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		awaitOrphaned()
		cancel()
	}()
	context.AfterFunc(ctx, func() {
		time.AfterFunc(lastResort, func() { os.Exit(1) })
	})
	return run(ctx, args)
}

// awaitOrphaned returns when the parent has closed its end of the pipe or is
// gone. Nothing is ever written to the pipe, so any return of Read means the end.
func awaitOrphaned() {
	syscall.CloseOnExec(orphanFD)
	var b [1]byte
	for {
		if _, err := syscall.Read(orphanFD, b[:]); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
