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

// firstLosses is how many fresh directories lose power.
const firstLosses = 30

// lossesInFirstSeconds takes the power of one fresh directory after the other. Each loss
// is a little later in the first start of plumbline up: half of them before the time that a start
// takes here until its first answer, half of them after it. Each directory starts again, with
// everything that was acknowledged.
func lossesInFirstSeconds(t *testing.T, r *result) {
	random := rand.New(rand.NewPCG(r.seed, 0))
	step, early := 2*untilFirstAnswer(t)/firstLosses, 0
	for i := range firstLosses {
		after := time.Duration(i)*step + time.Duration(random.Int64N(int64(step)))
		t.Run(fmt.Sprintf("after-%s", after.Round(time.Millisecond)), func(t *testing.T) {
			before, acknowledged, kept := lossOfFreshDirectory(t, after)
			early += before
			r.acknowledged += acknowledged
			r.seen.Traces += int(kept.Traces)
			r.seen.Points += int(kept.DriftPoints)
			r.seen.Bundles += int(kept.Bundles)
			r.seen.Lost += max(acknowledged-int(kept.Traces), 0)
		})
	}
	t.Logf("%d traces were acknowledged before a loss", early)
	if early == 0 && !t.Failed() {
		t.Error("no trace was acknowledged before a loss, so none could be lost")
	}
}

// untilFirstAnswer returns the time from a start of plumbline up on an empty disk to the first answer to a trace.
func untilFirstAnswer(t *testing.T) (took time.Duration) {
	t.Run("until-first-answer", func(t *testing.T) {
		f := startFresh(t)
		began := time.Now()
		pipelinetest.Await(t, "an answer to the first trace", func() bool { return f.publisher.answered() > 0 })
		took = time.Since(began)
		t.Logf("the first trace was acknowledged after %s", took)
		f.stopPublishing()
		f.up.terminate()
	})
	if took == 0 {
		t.Fatal("the time until the first answer was not measured")
	}
	return took
}

// freshUp is a plumbline up that was started on an empty disk, and a publisher that sends traces as soon as it can.
type freshUp struct {
	disk           *durabletest.Disk
	dir            string
	up             *service
	publisher      *publisher
	stopPublishing func() // returns when the publisher has ended
}

func startFresh(t *testing.T) *freshUp {
	disk := durabletest.New(t, filepath.Join(t.TempDir(), "disk"), wholeSite)
	dir, address := filepath.Join(disk.Dir, "data"), freeAddress(t)
	f := &freshUp{disk: disk, dir: dir, publisher: &publisher{t: t, url: "http://" + address}}
	f.up = run(t, &service{name: "up", program: program(t, "plumbline"), address: address, env: environment(),
		args: []string{"up", "--data", dir, "--listen", address}})
	working, stop := context.WithCancel(t.Context())
	published := make(chan struct{})
	go func() {
		defer close(published)
		f.publisher.publishOneByOne(working)
	}()
	f.stopPublishing = func() {
		stop()
		<-published
	}
	t.Cleanup(f.stopPublishing)
	return f
}

// lossOfFreshDirectory takes the power after a time, and starts again. It returns how many traces were acknowledged
// before the loss and altogether, and the final counts.
func lossOfFreshDirectory(t *testing.T, after time.Duration) (before, acknowledged int, kept store.Counts) {
	f := startFresh(t)
	time.Sleep(after)
	before = f.publisher.answered()
	losePowerOf(t, f.up, f.disk)
	began := time.Now()
	if err := f.up.start(); err != nil {
		t.Fatal(err)
	}
	f.up.awaitReady()
	t.Logf("without power after %s and %d answers, ready again %s after the next start", after, before, time.Since(began))
	f.stopPublishing()

	at, err := machine.Find(t.Context(), f.dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Open(t.Context(), store.Config{DSN: at.ClickHouseDSN, Stage: "integration"})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged = distinct(f.publisher.acked)
	pipelinetest.Await(t, "what was acknowledged", func() bool {
		kept, err = rows.Counts(t.Context())
		return err == nil && int(kept.Traces) >= acknowledged && int(kept.DriftPoints) >= acknowledged && kept.Bundles > 0
	})
	if err := rows.Close(); err != nil || int(kept.Traces) != acknowledged {
		t.Errorf("%d traces were acknowledged, %+v is there, %v", acknowledged, kept, err)
	}
	var found []byte
	pipelinetest.Await(t, "check --deep without a difference", func() bool {
		found, err = exec.CommandContext(t.Context(), program(t, "plumbline"), "check", "--deep", "--data", f.dir).CombinedOutput()
		t.Logf("check --deep: %v\n%s", err, found)
		return err == nil
	})
	f.up.terminate()
	return before, acknowledged, kept
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
