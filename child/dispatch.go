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

// Func is the body of a child that is this binary. It works until ctx ends,
// which happens when the parent asks for it, when the parent is gone, and on
// SIGTERM or SIGINT. What it returns is printed and becomes the exit status.
type Func func(ctx context.Context, args []string) error

const (
	// hiddenWord is the first argument that turns this binary into a child.
	hiddenWord = "__child"
	// orphanFD is the read end of the pipe whose other end lives in the
	// parent: it reads end-of-file when the parent stops the child or dies.
	orphanFD = 3
	// lastResort bounds a clean end nobody supervises any more.
	lastResort = 30 * time.Second
)

var (
	registry   = map[string]Func{}
	dispatched bool
)

// A child holds on to the main thread: foreign code that it loads may expect
// the main thread's stack and signals.
func init() {
	if isChild() {
		runtime.LockOSThread()
	}
}

// Register names a function that Start can run in a child. It belongs into a
// package's init; a name registered twice is a fault of the program.
func Register(name string, run Func) {
	if _, taken := registry[name]; taken {
		panic("child: " + name + " is registered twice")
	}
	registry[name] = run
}

// Dispatch is the first thing that main and TestMain call. In a child it runs
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
		return fmt.Errorf("child: no function is registered as %q", name)
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
// gone. Nothing is ever written to it, so any return of Read means the end.
func awaitOrphaned() {
	syscall.CloseOnExec(orphanFD)
	var b [1]byte
	for {
		if _, err := syscall.Read(orphanFD, b[:]); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
