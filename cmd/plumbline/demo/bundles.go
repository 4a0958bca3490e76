package demo

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// verified holds the results of the two verifiers.
type verified struct {
	mu     sync.Mutex
	golang int      // accepted by package aivs, with the machine's key pinned
	python int      // accepted by the verify.py inside the bundle
	faults []string // of the bundles that were not accepted
}

// interpreters is how many Python interpreters run concurrently.
const interpreters = 2

// verifyBundles verifies the files of bundles below dir with both verifiers.
func verifyBundles(ctx context.Context, dir string, bundles []store.Bundle, publicKey string) (v *verified, err error) {
	key, err := aivs.ParseKey(publicKey)
	if err != nil {
		return nil, fmt.Errorf("the machine's key: %w", err)
	}
	scratch, err := os.MkdirTemp("", "plumbline-bundles-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	v = new(verified)
	group, ctx := errgroup.WithContext(ctx)
	var taken atomic.Int64
	next := func() int { return int(taken.Add(1)) - 1 }
	for range min(interpreters, len(bundles)) {
		group.Go(func() error {
			p, err := startPython(ctx, publicKey)
			if err != nil {
				return err
			}
			for i := next(); i < len(bundles) && err == nil; i = next() {
				err = v.verify(p, dir, filepath.Join(scratch, strconv.Itoa(i)), &bundles[i], key)
			}
			return errors.Join(err, p.in.Close(), p.process.Wait())
		})
	}
	return v, group.Wait()
}

// verify verifies one bundle. An error means that the verification itself failed; faults of
// the bundle are recorded in v.
func (v *verified) verify(p *python, dir, scratch string, b *store.Bundle, key ed25519.PublicKey) error {
	data, err := os.ReadFile(filepath.Join(dir, b.Path))
	if errors.Is(err, os.ErrNotExist) {
		v.record(b, "the file is missing", nil)
		return nil
	}
	if err != nil {
		return err
	}
	inGo, err := verifyInGo(data, b, key)
	if err != nil {
		return err
	}
	if err := unpack(data, scratch); err != nil {
		v.record(b, err.Error(), nil)
		return nil
	}
	inPython, err := p.verify(filepath.Join(scratch, "session_proof"))
	if err != nil {
		return err
	}
	v.record(b, inGo, &v.golang)
	v.record(b, inPython, &v.python)
	return os.RemoveAll(scratch)
}

// verifyInGo returns the fault of the bundle, "" if there is none.
func verifyInGo(data []byte, b *store.Bundle, key ed25519.PublicKey) (string, error) {
	if schema.DigestOf(data) != b.SHA256 {
		return "its SHA-256 is not the one in table bundles", nil
	}
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{Keys: []ed25519.PublicKey{key}})
	if err != nil || report.Intact {
		return "", err
	}
	return fmt.Sprintf("%s: %s", report.Faults[0].Where, report.Faults[0].Message), nil
}

// record records the result of one verifier, or of both: the fault of the bundle, or one more that is accepted.
func (v *verified) record(b *store.Bundle, fault string, accepted *int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if fault == "" {
		*accepted++
	} else {
		v.faults = append(v.faults, b.Path+": "+fault)
	}
}

// unpack unpacks a bundle below dir, as a user would who receives it. Its verify.py
// must be identical to the one of this binary, because it is about to be executed.
func unpack(data []byte, dir string) error {
	content, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	archive := tar.NewReader(content)
	for {
		member, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if filepath.Base(member.Name) == "verify.py" && !bytes.Equal(text, aivs.VerifierScript()) {
			return fmt.Errorf("%s differs from the verifier of this version, so it was not run", member.Name)
		}
		if !filepath.IsLocal(member.Name) {
			return fmt.Errorf("%s is a path outside the bundle", member.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(member.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
}

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
