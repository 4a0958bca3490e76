package integration_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

func niceness(t *testing.T, pid int) int {
	t.Helper()
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - priority // the system call returns 20 less the niceness
}
