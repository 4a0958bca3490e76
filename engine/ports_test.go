package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/child"
)

// A port of the last start that another process has taken is replaced, with a warning, and only that one.
func TestPortsAreKeptUnlessTheyAreTaken(t *testing.T) {
	var log bytes.Buffer
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	dir := t.TempDir()
	choose := func(cfg Config) ports {
		t.Helper()
		s := settings{Dir: dir}
		if err := s.choosePorts(cfg, 1); err != nil {
			t.Fatal(err)
		}
		return s.ports
	}
	first := choose(cfg)
	if again := choose(cfg); again != first || first.NativePort == first.HTTPPort || log.Len() > 0 {
		t.Errorf("ports %v, then %v; log %q", first, again, &log)
	}
	taken, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(first.NativePort)))
	if err != nil {
		t.Fatal(err)
	}
	moved := choose(cfg)
	if moved.NativePort == first.NativePort || moved.HTTPPort != first.HTTPPort {
		t.Errorf("ports %v, want another native port than in %v and the same HTTP port", moved, first)
	}
	if text := log.String(); strings.Count(text, "port has changed") != 1 || !strings.Contains(text, "old="+strconv.Itoa(first.NativePort)) {
		t.Errorf("log %q", text)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if again := choose(cfg); again != moved {
		t.Errorf("ports %v, want those of the last start, %v", again, moved)
	}
	swapped := Config{Logger: cfg.Logger, NativePort: moved.HTTPPort}
	if fixed := choose(swapped); fixed.NativePort != moved.HTTPPort || fixed.HTTPPort == fixed.NativePort {
		t.Errorf("ports %v, want native %d and another HTTP port", fixed, moved.HTTPPort)
	}
	kept := choose(cfg)
	if taken, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	busy := Config{Logger: cfg.Logger, HTTPPort: taken.Addr().(*net.TCPAddr).Port}
	if err := (&settings{Dir: dir}).choosePorts(busy, 1); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("a fixed port that is taken: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if again := choose(cfg); again != kept {
		t.Errorf("ports %v after a start that failed, want %v", again, kept)
	}
	if err := os.WriteFile(portsFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&settings{Dir: dir}).choosePorts(cfg, 1); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a broken file: %v", err)
	}
}
