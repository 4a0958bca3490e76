package integration_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/integration/checker"
)

var (
	cost       = flag.Bool("cost", false, "run TestCostOfATrace: see make cost")
	costTraces = flag.Int("cost-traces", 50_000, "traces of TestCostOfATrace")
	costAgents = flag.Int("cost-agents", 200, "agents of TestCostOfATrace")
)

// TestCostOfATrace prints the inputs for the calculations of docs/SCALING.md: CPU of each
// process, and bytes on each disk, per trace of a fleet that went through all services.
func TestCostOfATrace(t *testing.T) {
	if !*cost {
		t.Skip("it measures, and demands nothing: make cost")
	}
	planned := fleet.New(fleet.Config{Seed: 5, Agents: *costAgents, Traces: *costTraces, Start: time.Now().UTC()})
	for name, open := range map[string]func(testing.TB) *site{"one server": newSite, "two shards": newShardedSite} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			processes := map[string]int{"broker": s.broker.Pid(), "engine": s.engine.Pid()}
			if len(s.place.shards) > 0 {
				processes["second engine"] = s.place.shards[1].Pid()
			}
			for _, service := range s.services() {
				processes[service.name] = service.cmd.Process.Pid
			}
			before := map[string]time.Duration{}
			for process, pid := range processes {
				before[process] = cpuOf(t, pid)
			}
			s.deliver(planned, nil)
			checker.AwaitAcked(t, s.client)
			for process, pid := range processes {
				spent := cpuOf(t, pid) - before[process]
				t.Logf("%-14s %6.1f µs a trace", process, float64(spent.Microseconds())/float64(planned.Planted().Stored))
			}
			seen := s.compare(planned)
			t.Logf("%-14s %6d bytes a trace", "broker", bytesBelow(t, filepath.Join(s.dir, "broker"))/int64(seen.Traces))
			t.Logf("%-14s %6d bytes a trace", "bundles", bytesBelow(t, s.bundleDir())/int64(seen.Traces))
			for _, row := range s.query("SELECT table, sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table ORDER BY 2 DESC") {
				t.Logf("%-14s %6.1f bytes a row, %d rows", row[0], float64(row[1].(uint64))/float64(row[2].(uint64)), row[2])
			}
			t.Logf("%+v, sent %d bytes", seen, sent(planned))
		})
	}
}

// sent returns how many bytes a fleet publishes.
func sent(planned *fleet.Fleet) (bytes int) {
	for line := range planned.Lines() {
		bytes += len(line.Raw)
	}
	return bytes
}

// cpuOf returns the CPU time that a process has used so far.
func cpuOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the name may contain blanks
	fields := strings.Fields(after)
	var ticks int
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// bytesBelow returns the total size of the files below a directory.
func bytesBelow(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
