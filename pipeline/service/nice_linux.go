package service

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// beNice gives every thread of this process at least a niceness. Linux keeps one for each thread, and a new
// thread begins with that of the thread which starts it: so beNice repeats until no thread has less.
func beNice(niceness int) error {
	for changed := true; changed; {
		changed = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list the threads of this process: %w", err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return fmt.Errorf("list the threads of this process: %w", err)
			}
			priority, err := unix.Getpriority(unix.PRIO_PROCESS, id)
			if err == nil && 20-priority < niceness { // the system call returns 20 less the niceness
				changed = true
				err = unix.Setpriority(unix.PRIO_PROCESS, id, niceness)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // that thread has ended
				return fmt.Errorf("set the niceness of thread %d: %w", id, err)
			}
		}
	}
	return nil
}
