package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// By default drift and exporter come after the other services where CPU is short.
func TestNicenessOfServices(t *testing.T) {
	const want = "10"
	for _, name := range []string{"drift", "exporter"} {
		cmd := exec.CommandContext(t.Context(), program(t, name), "--nats-url=nats://"+freeAddress(t), "--admin-listen="+freeAddress(t))
		cmd.Env, cmd.Dir, cmd.Stderr = environment(), t.TempDir(), t.Output()
		bind(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		has, deadline := "", time.Now().Add(time.Minute)
		for has != want && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(stat), ") ") // the fields after the name, from the third on
			has = strings.Fields(after)[16]
		}
		if has != want {
			t.Errorf("%s has niceness %s, want %s", name, has, want)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}
}
