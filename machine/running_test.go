package machine_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/machine"
)

// answering lists a machine that answers, and returns its data directory and its withdrawal.
func answering(t *testing.T, state string) (dir string, withdraw func() error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	at := machine.Endpoints{PID: 1, DataDir: t.TempDir(), IngestURL: server.URL, ClickHouseDSN: "clickhouse://reader:secret@h/d"}
	return at.DataDir, announced(t, state, at)
}

func announced(t *testing.T, state string, at machine.Endpoints) (withdraw func() error) {
	t.Helper()
	text, err := json.Marshal(at)
	if err == nil {
		err = os.WriteFile(filepath.Join(at.DataDir, "endpoints.json"), text, 0o600)
	}
	if err == nil {
		withdraw, err = machine.Announce(state, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return withdraw
}

// The only running machine is found, a killed one does not count, and several are named.
func TestFindAny(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state", "plumbline")
	if _, err := machine.FindAny(t.Context(), state); !errors.Is(err, machine.ErrNotRunning) {
		t.Errorf("none: %v", err)
	}
	announced(t, state, machine.Endpoints{DataDir: t.TempDir(), IngestURL: "http://127.0.0.1:1"})
	if _, err := machine.FindAny(t.Context(), state); !errors.Is(err, machine.ErrNotRunning) {
		t.Errorf("a killed one: %v", err)
	}
	first, withdraw := answering(t, state)
	if at, err := machine.FindAny(t.Context(), state); err != nil || at.DataDir != first {
		t.Errorf("%+v, %v, want %s", at, err, first)
	}
	killed := exec.Command("true")
	if err := killed.Run(); err != nil {
		t.Fatal(err)
	}
	at, err := machine.Find(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	announced(t, state, machine.Endpoints{PID: killed.Process.Pid, DataDir: t.TempDir(), IngestURL: at.IngestURL})
	if at, err := machine.FindAny(t.Context(), state); err != nil || at.DataDir != first {
		t.Errorf("beside a killed one whose address it has: %+v, %v", at, err)
	}
	second, _ := answering(t, state)
	_, err = machine.FindAny(t.Context(), state)
	if !errors.Is(err, machine.ErrSeveral) || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		t.Errorf("several: %v", err)
	}
	for range 2 {
		if err := withdraw(); err != nil {
			t.Error(err)
		}
	}
	if at, err := machine.FindAny(t.Context(), state); err != nil || at.DataDir != second {
		t.Errorf("%+v, %v, want %s", at, err, second)
	}
	files, err := filepath.Glob(filepath.Join(state, "running", "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("%q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		info, err2 := os.Stat(file)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || strings.Contains(string(text), "secret") {
			t.Errorf("%s has mode %v and contains %s", file, info.Mode(), text)
		}
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.FindAny(t.Context(), state); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("a broken file: %v", err)
	}
}
