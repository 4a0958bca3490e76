package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/plumbline/plumbline/child"
)

// The port of the monitoring pages always differs from that of the clients, although no process
// listens on the latter when it is chosen.
func TestPortsDiffer(t *testing.T) {
	last, err := child.FreePort(loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := net.Listen("tcp", address(loopback, 0)) // another process took it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pages.Close() }()
	dir, next := t.TempDir(), last+1 // FreePort tries it next
	kept := fmt.Sprintf(`{"host":"127.0.0.1","port":%d,"monitor_port":%d}`, next, pages.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(endpointFile(dir), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := Assign(dir, "", 0); err != nil || e.Port == e.MonitorPort {
		t.Errorf("%+v, %v", e, err)
	}
}

// A start with a fixed port that another process has fails, and the next one has the port of the last one.
func TestFixedPortThatIsTaken(t *testing.T) {
	dir := t.TempDir()
	last, err := Assign(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", address(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := Assign(dir, "", other.Addr().(*net.TCPAddr).Port); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("%v, want ErrPortTaken", err)
	}
	if again, err := Assign(dir, "", 0); err != nil || again != last {
		t.Errorf("%+v, %v, want %+v", again, err, last)
	}
}

// In a version that did not sync the file, a loss of power in the first seconds left it
// empty: it is created again. A file with other content is not replaced.
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
		made, err := Assign(dir, "", 0)
		if (err == nil) != c.made {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if again, err := Assign(dir, "", 0); err != nil || again != made || made.Password == "" {
			t.Errorf("%s: %+v, then %+v, %v", name, made, again, err)
		}
	}
}
