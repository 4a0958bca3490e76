package service

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// niceVariable marks the process of the test: a niceness cannot be taken back.
const niceVariable = "PLUMBLINE_TEST_NICENESS"

func TestNicenessOfEveryThread(t *testing.T) {
	if os.Getenv(niceVariable) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNicenessOfEveryThread$")
		cmd.Env = append(os.Environ(), niceVariable+"=1")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	end := holdThreads(8)
	defer end()
	for _, step := range []struct{ asked, want int }{{0, nicenessOf(t, "self")}, {7, 7}, {3, 7}, {0, 7}, {9, 9}} {
		if err := beNice(step.asked); err != nil {
			t.Fatal(err)
		}
		defer holdThreads(8)() // which start with the niceness of others
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil || len(threads) < 16 {
			t.Fatalf("%d threads, %v", len(threads), err)
		}
		for _, thread := range threads {
			if got := nicenessOf(t, "self/task/"+thread.Name()); got != step.want {
				t.Errorf("after %d, thread %s has %d, want %d", step.asked, thread.Name(), got, step.want)
			}
		}
	}
}

// holdThreads keeps n goroutines on threads of their own until end is called.
func holdThreads(n int) (end func()) {
	var held, done sync.WaitGroup
	release := make(chan struct{})
	held.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			held.Done()
			<-release
		})
	}
	held.Wait()
	return func() { close(release); done.Wait() }
}

func nicenessOf(t *testing.T, process string) (niceness int) {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the fields after the name, from the third on
	if _, err := fmt.Sscan(strings.Fields(after)[16], &niceness); err != nil {
		t.Fatal(err)
	}
	return niceness
}
