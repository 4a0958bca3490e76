package durable

import (
	"fmt"
	"syscall"
)

// Space returns how many bytes of the directory's disk are free for this process, and the size of
// the disk.
func Space(dir string) (free, whole int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	block := int64(s.Bsize)                                      // of other types on other systems
	return int64(s.Bavail) * block, int64(s.Blocks) * block, nil // numbers of blocks
}
