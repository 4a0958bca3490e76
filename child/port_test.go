package child_test

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/child"
)

func TestFreePort(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port, err := child.FreePort("127.0.0.1", 0)
		if err != nil {
			t.Fatal(err)
		}
		if port < 1024 || port >= 32_768 || seen[port] {
			t.Errorf("port %d is one of the system's, or was given out before", port)
		}
		seen[port] = true
	}
	wanted, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if port, err := child.FreePort("127.0.0.1", wanted); err != nil || port != wanted {
		t.Errorf("a free port that is wanted: %d, %v, want %d", port, err, wanted)
	}
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(wanted)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if err := child.PortFree("127.0.0.1", wanted); !errors.Is(err, child.ErrPortTaken) || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("a port that is taken: error %v", err)
	}
	if port, err := child.FreePort("127.0.0.1", wanted); err != nil || port == wanted {
		t.Errorf("a wanted port that is taken: %d, error %v", port, err)
	}
	if port, err := child.FreePort("192.0.2.1", 0); err == nil {
		t.Errorf("port %d of an address that is not this machine's", port)
	}
}

// The address of a child stays its own while it is down, and is free after Stop.
func TestAddressOfAChildIsReserved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("addresses are reserved on Linux only")
	}
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, _ := config(t, "well-behaved")
	cfg.Listens = []child.Address{{Host: "127.0.0.1", Port: port}}
	p := start(t, cfg) // it never listens, as if it were always down
	if other, err := child.FreePort("127.0.0.1", port); err != nil || other == port {
		t.Errorf("port %d, error %v, want another port than that of a child", other, err)
	}
	second, _, _ := config(t, "well-behaved")
	second.Listens = []child.Address{{Host: "0.0.0.0", Port: port}} // the same port, by another name
	if _, err := child.Start(t.Context(), second); !errors.Is(err, child.ErrPortTaken) || !strings.Contains(err.Error(), second.Listens[0].String()) {
		t.Errorf("a second child at the same address: error %v", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, second)
}

// A child whose address a stranger has taken starts again when the stranger is gone.
func TestRestartWaitsForTheAddress(t *testing.T) {
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, _ := config(t, "well-behaved")
	cfg.Listens = []child.Address{{Host: "127.0.0.1", Port: port}}
	p := start(t, cfg)
	stranger, err := net.Listen("tcp", cfg.Listens[0].String())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	taken := func(s child.State) bool { return s.Restarts >= 2 && errors.Is(s.Fault, child.ErrPortTaken) }
	if err := p.Await(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), func(s child.State) bool { return s.Ready }); err != nil {
		t.Fatal(err)
	}
}
