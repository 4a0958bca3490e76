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

// Threads start all the time while beNice runs. It finds all of them, and lowers no niceness.
func TestNicenessOfEveryThread(t *testing.T) {
	if os.Getenv(niceVariable) == "" {
		for range 4 {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNicenessOfEveryThread$")
			cmd.Env = append(os.Environ(), niceVariable+"=1")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		}
		return
	}
	before, threads := nicenessOf(t, "self"), new(heldThreads)
	defer threads.end()
	for _, niceness := range []int{7, 3, 12} {
		threads.hold(10)
		done := make(chan error)
		go func() { done <- beNice(niceness) }()
		threads.hold(100)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		before = max(before, niceness)
		all, err := os.ReadDir("/proc/self/task")
		if err != nil || len(all) < 110 {
			t.Fatalf("%d threads, %v", len(all), err)
		}
		for _, thread := range all {
			if got := nicenessOf(t, "self/task/"+thread.Name()); got != before {
				t.Errorf("after %d, thread %s has %d, want %d", niceness, thread.Name(), got, before)
			}
		}
	}
}

// heldThreads are goroutines on threads of their own.
type heldThreads struct {
	ended   sync.WaitGroup
	release chan struct{}
}

// hold starts n more, one after the other.
func (h *heldThreads) hold(n int) {
	if h.release == nil {
		h.release = make(chan struct{})
	}
	for range n {
		held := make(chan struct{})
		h.ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			close(held)
			<-h.release
		})
		<-held
	}
}

func (h *heldThreads) end() {
	close(h.release)
	h.ended.Wait()
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
