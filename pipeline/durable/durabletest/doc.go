// Package durabletest gives tests file systems of their own: disks that fill, that grow,
// and that lose their power.
//
// It owns the image file below such a disk and its mount; what lies on it is the test's.
// A disk needs the rights of root, loop devices and the tools of ext4, on Linux: without
// them the test skips and says so.
package durabletest
