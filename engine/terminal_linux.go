package engine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const ctrlD = 4

// terminalOnStdin replaces standard input with a pseudo terminal and returns its
// other end. With any other standard input, this release of the library installs a
// handler that ends the process on any exception in a connection, such as a few
// bytes of garbage on a port (ClickHouse issue 115666).
func terminalOnStdin() (*os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number of the terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := unix.Dup3(int(slave.Fd()), 0, 0); err != nil {
		return nil, fmt.Errorf("duplicate onto standard input: %w", err)
	}
	return master, nil
}
