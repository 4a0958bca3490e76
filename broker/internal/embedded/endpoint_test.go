package embedded

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/plumbline/plumbline/child"
)

// The port of the pages is never that of the clients, on which nobody listens when it is
// chosen.
func TestPortsDiffer(t *testing.T) {
	last, err := child.FreePort(loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := net.Listen("tcp", address(loopback, 0)) // somebody took it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pages.Close() }()
	dir, next := t.TempDir(), last+1 // which FreePort tries next
	kept := fmt.Sprintf(`{"host":"127.0.0.1","port":%d,"monitor_port":%d}`, next, pages.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(endpointFile(dir), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := Settle(dir, "", 0); err != nil || e.Port == e.MonitorPort {
		t.Errorf("%+v, %v", e, err)
	}
}

// A loss of power in the first seconds of a version that did not sync the file left it
// empty: it is made again. A file that says something else is not thrown away.
func TestEndpointAfterALossOfPower(t *testing.T) {
	for name, c := range map[string]struct {
		left string
		made bool
	}{
		"nothing":          {"", true},
		"zero bytes":       {"\x00\x00\x00\x00", true},
		"half of a file":   {`{"host": "127.0.0.1", "po`, false},
		"something else":   {"# a note", false},
		"zeros at the end": {"{}\x00\x00", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(endpointFile(dir), []byte(c.left), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := Settle(dir, "", 0)
		if (err == nil) != c.made {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if again, err := Settle(dir, "", 0); err != nil || again != made || made.Password == "" {
			t.Errorf("%s: %+v, then %+v, %v", name, made, again, err)
		}
	}
}
