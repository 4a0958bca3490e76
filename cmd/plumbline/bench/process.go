package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used, from Linux's /proc.
type usage struct {
	cpu     time.Duration // since its start
	peak    int64         // highest resident memory in bytes, since its start or resetPeak
	written int64         // bytes that it had written to disk; a file system in memory counts none
}

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

func usageOf(pid int) (u usage, err error) {
	if u.cpu, err = cpuOf(pid); err != nil {
		return u, err
	}
	kilobytes, err := procNumber(pid, "status", "VmHWM")
	if err != nil {
		return u, err
	}
	u.peak = kilobytes << 10
	u.written, err = procNumber(pid, "io", "write_bytes")
	return u, err
}

// cpuOf returns the CPU time of all threads of a process.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process, which needs Linux: %w", err)
	}
	_, after, _ := bytes.Cut(stat, []byte(") ")) // the name may contain blanks
	fields := strings.Fields(string(after))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// procNumber returns a number of a file of /proc with lines "name: number".
func procNumber(pid int, file, name string) (int64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read what a process uses, which needs Linux: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); key == name {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}

// resetPeak sets the highest resident memory of a process to the present one.
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of a process's memory: %w", err)
	}
	return nil
}
