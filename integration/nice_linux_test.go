package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// By default drift and exporter run with niceness 10, or the higher one that they were started with.
func TestNicenessOfServices(t *testing.T) {
	want := max(10, niceness(t, os.Getpid()))
	for _, name := range []string{"drift", "exporter"} {
		cmd := exec.CommandContext(t.Context(), program(t, name), "--nats-url=nats://"+freeAddress(t), "--admin-listen="+freeAddress(t))
		cmd.Env, cmd.Dir, cmd.Stderr = environment(), t.TempDir(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		has := 0
		for deadline := time.Now().Add(time.Minute); has < want && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			has = niceness(t, cmd.Process.Pid)
		}
		if has != want {
			t.Errorf("%s has niceness %d, want %d", name, has, want)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}
}

func niceness(t *testing.T, pid int) (n int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the fields after the name, from the third on
	if _, err := fmt.Sscan(strings.Fields(after)[16], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
