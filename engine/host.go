package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine/protocol"
)

// findHost returns the program that runs the library: plumbline-engine beside this binary or on PATH,
// or nothing if this binary can do it itself.
func findHost() (string, error) {
	if child.Registered(protocol.Child) {
		return "", nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("engine: find this program: %w", err)
	}
	for _, name := range []string{filepath.Join(filepath.Dir(self), protocol.Program), protocol.Program} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("engine: %s, which runs the ClickHouse library, is not in %s and not on PATH. Do one of these: "+
		"install it beside %s (a release and make build have both); give the DSN of a ClickHouse server; put an official clickhouse binary on PATH; "+
		"set %s to a clickhouse binary", protocol.Program, filepath.Dir(self), filepath.Base(self), Variable)
}

// explainHost adds to the error of a start that the system has no loader for the host. The kernel reports that the host's
// own file is missing.
func explainHost(err error, host string) error {
	fault, is := errors.AsType[*fs.PathError](err)
	if is && fault.Path == host && errors.Is(fault, fs.ErrNotExist) {
		return fmt.Errorf("%w: it needs the loader of glibc, which this system may lack", err)
	}
	return err
}
