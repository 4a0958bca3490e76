package demo

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

//go:embed each.py
var eachScript string

// python is an isolated Python 3 process (-I: without the user's modules and settings). It runs
// the verify.py of one unpacked bundle after the other.
type python struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startPython starts the process; key is the key that must have signed each bundle.
func startPython(ctx context.Context, key string) (*python, error) {
	p := &python{process: exec.CommandContext(ctx, "python3", "-I", "-c", eachScript, key)}
	in, err := p.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start python3, which verifies the bundles: %w", err)
	}
	return p, nil
}

// verify returns what verify.py reports as wrong with the bundle unpacked in directory,
// "" if nothing.
func (p *python) verify(directory string) (fault string, err error) {
	if _, err := io.WriteString(p.in, directory+"\n"); err != nil {
		return "", fmt.Errorf("ask python3: %w", err)
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read the answer of python3: %w", err)
	}
	if strings.HasPrefix(answer, "0 ") {
		return "", nil
	}
	return "verify.py exits with " + strings.TrimSpace(answer), nil
}

// stop ends the interpreter.
func (p *python) stop() error { return errors.Join(p.in.Close(), p.process.Wait()) }
