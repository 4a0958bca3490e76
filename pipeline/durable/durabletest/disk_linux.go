package durabletest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is a file system that belongs to a test.
type Disk struct {
	Dir string // where it is mounted

	t     testing.TB
	image string // the file that contains it; "" if it is in memory
}

// mountOptions make ext4 keep no more unsynced data than POSIX requires: it writes the names of
// files every second, and it does not sync a file that replaces another one.
const mountOptions = "loop,commit=1,noauto_da_alloc"

// New creates a disk of the given number of megabytes with ext4 in an image file, and mounts it
// on a directory, which it creates if it is missing. It unmounts the disk when the test ends.
func New(t testing.TB, dir string, megabytes int64) *Disk {
	t.Helper()
	d := newDisk(t, dir)
	d.image = filepath.Join(t.TempDir(), "disk")
	file, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(file.Truncate(megabytes<<20), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	d.run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0", d.image)
	d.mount()
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
	return d
}

// NewGrowing does the same for a disk that can grow while it is in use. It is in memory, so it
// cannot lose its power. It is not ext4, because a kernel may refuse even root to grow ext4.
func NewGrowing(t testing.TB, dir string, megabytes int64) *Disk {
	t.Helper()
	d := newDisk(t, dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, size(megabytes)); err != nil {
		t.Fatalf("mount %s: %v", dir, err)
	}
	return d
}

func newDisk(t testing.TB, dir string) *Disk {
	t.Helper()
	if lacking := Lacking(); lacking != "" {
		t.Skip(lacking)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // a process that is still ending may use it
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return &Disk{Dir: dir, t: t}
}

func size(megabytes int64) string { return fmt.Sprintf("size=%dm,mode=0700", megabytes) }

// Lacking returns why a test cannot have its own disk here, or "".
func Lacking() string {
	if os.Geteuid() != 0 {
		return "it mounts a file system, which needs the rights of root"
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fmt.Sprintf("it mounts a file system in a file, which needs loop devices: %v", err)
	}
	for _, tool := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Sprintf("it makes a file system, which needs e2fsprogs and util-linux: %v", err)
		}
	}
	return ""
}

// Grow sets the total size of a disk from NewGrowing, in megabytes.
func (d *Disk) Grow(megabytes int64) {
	d.t.Helper()
	if err := unix.Mount("tmpfs", d.Dir, "tmpfs", unix.MS_REMOUNT, size(megabytes)); err != nil {
		d.t.Fatalf("let %s grow: %v", d.Dir, err)
	}
}

// Fill uses all the space that is left, until Empty.
func (d *Disk) Fill() {
	d.t.Helper()
	file, err := os.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	for size := int64(1 << 30); err == nil && size >= 1<<10; {
		switch failed := unix.Fallocate(int(file.Fd()), 0, end, size); {
		case failed == nil:
			end += size
		case errors.Is(failed, unix.ENOSPC):
			size /= 2
		default:
			err = failed
		}
	}
	if err != nil {
		d.t.Fatalf("fill %s: %v", d.Dir, err)
	}
}

// Empty frees what Fill used.
func (d *Disk) Empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *Disk) ballast() string { return filepath.Join(d.Dir, ".ballast") }

// Sync writes the data of all processes to the disk.
func (d *Disk) Sync() {
	d.t.Helper()
	d.withRoot(func(fd int) error { return unix.Syncfs(fd) })
}

// The shutdown of ext4 (linux/fs/ext4/ext4.h): EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH.
const (
	shutdown     = 0x8004587d
	withoutFlush = 2
)

// CutPower simulates a loss of power. At one moment the file system stops writing to its device,
// permanently: neither a page that was written and not synced reaches it, nor a name that is not
// in the journal yet. Every later call on the file system fails. The kernel provides this to test
// for a loss of power.
//
// Copying the image of a file system in use would not simulate such a moment: the kernel
// continues to write during the copy. A copy that holds the journal from before a block, and the
// block from after, is a state that no loss of power leaves.
//
// The device itself loses nothing that was written to it, as if it had no cache. A real disk with
// a cache writes it out at the flush that ext4 sends within fsync.
func (d *Disk) CutPower() {
	d.t.Helper()
	d.withRoot(func(fd int) error { return unix.IoctlSetPointerInt(fd, shutdown, withoutFlush) })
}

// withRoot calls a function for the whole file system on its open root.
func (d *Disk) withRoot(call func(fd int) error) {
	d.t.Helper()
	dir, err := os.Open(d.Dir)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := errors.Join(call(int(dir.Fd())), dir.Close()); err != nil {
		d.t.Fatalf("disk %s: %v", d.Dir, err)
	}
}

// RestorePower mounts the disk again at the same place, after CutPower: ext4 replays its journal.
// The processes that used the disk have been killed, but may still be ending.
func (d *Disk) RestorePower() {
	d.t.Helper()
	err := unix.Unmount(d.Dir, 0)
	for end := time.Now().Add(time.Minute); errors.Is(err, unix.EBUSY) && time.Now().Before(end); err = unix.Unmount(d.Dir, 0) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		d.t.Fatalf("unmount %s: %v", d.Dir, err)
	}
	d.mount()
}

func (d *Disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", mountOptions, d.image, d.Dir)
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, output)
	}
}
