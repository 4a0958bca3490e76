// Package durabletest gives tests their own file systems: disks that fill up, that grow, and that
// lose their power.
//
// It owns the image file of such a disk and its mount. The test owns the files on it. A disk
// needs the privileges of root, loop devices and the tools of ext4, on Linux. Without them the
// test is skipped, with the reason.
package durabletest
