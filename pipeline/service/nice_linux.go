package service

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostPasses limits how often beNice looks at all threads.
const mostPasses = 100

// beNice gives every thread of this process at least a niceness. Linux keeps one for each thread, and a new
// thread begins with that of the thread which starts it: so beNice looks at all threads until none has changed.
func beNice(niceness int) error {
	for range mostPasses {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list the threads of this process: %w", err)
		}
		changed := false
		for _, thread := range threads {
			raised, err := raise(thread.Name(), niceness)
			if err != nil {
				return fmt.Errorf("set the niceness of thread %s: %w", thread.Name(), err)
			}
			changed = changed || raised
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("the system accepts niceness %d, and threads do not have it", niceness)
}

// raise gives a thread at least a niceness. It reports whether the thread had less, or has ended: then it may have
// started another one.
func raise(thread string, niceness int) (bool, error) {
	id, err := strconv.Atoi(thread)
	if err != nil {
		return false, err
	}
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, id)
	if err == nil && 20-priority >= niceness { // the system call returns 20 less the niceness
		return false, nil
	}
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, id, niceness)
	}
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	return true, err
}
