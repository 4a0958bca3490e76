package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

const (
	firstSeconds = 30                     // how many fresh directories lose power
	firstStep    = 150 * time.Millisecond // how much later each loss is
)

// lossesInFirstSeconds takes the power of one fresh directory after the other. Each loss
// is a little later in the first start of plumbline up. Each directory starts again, with
// everything that was acknowledged.
func lossesInFirstSeconds(t *testing.T, r *result) {
	random := rand.New(rand.NewPCG(r.seed, 0))
	for step := range firstSeconds {
		after := time.Duration(step)*firstStep + time.Duration(random.Int64N(int64(firstStep)))
		t.Run(fmt.Sprintf("after-%s", after.Round(time.Millisecond)), func(t *testing.T) {
			acknowledged, kept := lossOfFreshDirectory(t, after)
			r.acknowledged += acknowledged
			r.seen.Traces += int(kept.Traces)
			r.seen.Points += int(kept.DriftPoints)
			r.seen.Bundles += int(kept.Bundles)
			r.seen.Lost += max(acknowledged-int(kept.Traces), 0)
		})
	}
}

// lossOfFreshDirectory starts plumbline up on an empty disk and takes the power after a
// time. A publisher sends traces as soon as it can, before and after the loss. The function
// returns how many traces were acknowledged, and the final counts.
func lossOfFreshDirectory(t *testing.T, after time.Duration) (acknowledged int, kept store.Counts) {
	disk := durabletest.New(t, filepath.Join(t.TempDir(), "disk"), wholeSite)
	dir, address := filepath.Join(disk.Dir, "data"), freeAddress(t)
	up := run(t, &service{name: "up", program: program(t, "plumbline"), address: address, env: environment(),
		args: []string{"up", "--data", dir, "--listen", address}})
	p := &publisher{t: t, url: "http://" + address}
	working, stop := context.WithCancel(t.Context())
	published := make(chan struct{})
	go func() {
		defer close(published)
		p.publishOneByOne(working)
	}()
	t.Cleanup(func() {
		stop()
		<-published
	})
	time.Sleep(after)
	losePowerOf(t, up, disk)
	began := time.Now()
	if err := up.start(); err != nil {
		t.Fatal(err)
	}
	up.awaitReady()
	t.Logf("without power after %s, ready again %s after the next start", after, time.Since(began))
	stop()
	<-published

	at, err := machine.Find(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Open(t.Context(), store.Config{DSN: at.ClickHouseDSN, Stage: "integration"})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged = distinct(p.acked)
	pipelinetest.Await(t, "what was acknowledged", func() bool {
		kept, err = rows.Counts(t.Context())
		return err == nil && int(kept.Traces) >= acknowledged && int(kept.DriftPoints) >= acknowledged && kept.Bundles > 0
	})
	if err := rows.Close(); err != nil || int(kept.Traces) != acknowledged {
		t.Errorf("%d traces were acknowledged, %+v is there, %v", acknowledged, kept, err)
	}
	var found []byte
	pipelinetest.Await(t, "check --deep without a difference", func() bool {
		found, err = exec.CommandContext(t.Context(), program(t, "plumbline"), "check", "--deep", "--data", dir).CombinedOutput()
		t.Logf("check --deep: %v\n%s", err, found)
		return err == nil
	})
	up.terminate()
	return acknowledged, kept
}

// publishOneByOne publishes traces of one session until ctx ends, at least one, and then ends
// the session.
func (p *publisher) publishOneByOne(ctx context.Context) {
	p.register(pipelinetest.Card("ac", "a"))
	for i := 0; i == 0 || ctx.Err() == nil && !p.t.Failed(); i++ {
		at := time.Date(2026, 2, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		p.publish([][]byte{pipelinetest.Trace(fmt.Sprint("tr-", i), "a", "ac", "s", at, "search").Data}, nil)
	}
	p.end("a", "s")
}

// losePowerOf takes the power of a disk, and at the same moment of a process that uses it and
// of the process's children.
func losePowerOf(t *testing.T, parent *service, disk *durabletest.Disk) {
	t.Helper()
	signal := func(pid int, sig syscall.Signal) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	pid := parent.cmd.Process.Pid
	signal(pid, syscall.SIGSTOP)
	children := childrenOf(t, pid)
	for _, child := range children {
		signal(child, syscall.SIGSTOP)
	}
	disk.CutPower()
	for _, child := range children {
		signal(child, syscall.SIGKILL)
	}
	if err := parent.kill(); err != nil {
		t.Error(err)
	}
	disk.RestorePower()
}

// childrenOf returns the child processes of all threads of a process.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Fatalf("the children of process %d: %v", pid, err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}
