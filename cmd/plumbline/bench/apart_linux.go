package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDirectory is FS_TOPDIR_FL of linux/fs.h, which "chattr +T" sets.
const topDirectory = 0x00020000

// keepApart asks the file system to put each directory below dir into another part of the disk. ext4 without a journal
// does not use an inode again for some minutes after its file was removed, and each new file of the same part looks at
// all these inodes. So a measurement would pay for the files that an earlier one has removed. It is only a hint: most
// other file systems do not know it.
func keepApart(dir string) {
	file, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDirectory))
	}
}
