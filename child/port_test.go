package child_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
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
