package broker_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/child"
)

// lines is a log that a test can wait on.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{}
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.written <- struct{}{}:
	default:
	}
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await returns when the log contains a word so many times.
func (l *lines) await(t *testing.T, word string, times int) {
	t.Helper()
	for {
		text := l.String()
		if strings.Count(text, word) >= times {
			return
		}
		select {
		case <-l.written:
		case <-t.Context().Done():
			t.Fatalf("the log does not contain %q %d times:\n%s", word, times, text)
		}
	}
}

// takePort kills the broker and listens on its port, without accepting connections and with a
// full backlog: a request to it never gets an answer.
func takePort(t *testing.T, b *broker.Broker, port int) (free func()) {
	t.Helper()
	at := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	stranger, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetsockoptInt(stranger, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		if pid := b.Pid(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		if syscall.Bind(stranger, at) == nil && syscall.Listen(stranger, 0) == nil {
			break
		}
	}
	for range 3 {
		client, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Connect(client, at) // continues in the background
		t.Cleanup(func() { _ = syscall.Close(client) })
	}
	free = sync.OnceFunc(func() { _ = syscall.Close(stranger) })
	t.Cleanup(free)
	return free
}

// If another process takes the port while the broker is down, the error names the port at once,
// and the broker is back as soon as the port is free.
func TestUsedPortIsReported(t *testing.T) {
	log := &lines{written: make(chan struct{}, 1)}
	b := start(t, broker.Config{DataDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	at, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	free := takePort(t, b, port)
	log.await(t, "the address "+at.Host+" is taken", 1)
	if err := b.Fault(); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("the broker does not run: %v", err)
	}
	free()
	log.await(t, "child restarted", 1)
	if err := b.Fault(); err != nil {
		t.Errorf("the broker runs: %v", err)
	}
	connect(t, b)
}

// If another process has taken the port of the last start, the broker takes another one, and the warning names
// both. Without that, the next start on the same port says nothing.
func TestChangedPortIsReported(t *testing.T) {
	dir, log := t.TempDir(), &lines{written: make(chan struct{}, 1)}
	cfg := broker.Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))}
	once := func() string {
		b, err := broker.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(b.URL())
		if err = errors.Join(err, b.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		return at.Port()
	}
	first := once()
	stranger, err := net.Listen("tcp4", "127.0.0.1:"+first)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	second := once()
	if third := once(); first == second || second != third {
		t.Errorf("the ports are %s, %s with a stranger on the first, and then %s", first, second, third)
	}
	warning := "the broker's port has changed"
	if text := log.String(); strings.Count(text, warning) != 1 || !strings.Contains(text, "old="+first+" new="+second) {
		t.Errorf("want one warning with %s and %s in\n%s", first, second, text)
	}
}
