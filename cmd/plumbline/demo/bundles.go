package demo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

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
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range bundles {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(interpreters, len(bundles)) {
		group.Go(func() error {
			p, err := startPython(ctx, publicKey)
			if err != nil {
				return err
			}
			for i := range next {
				if err = v.verify(p, dir, filepath.Join(scratch, strconv.Itoa(i)), &bundles[i], key); err != nil {
					break
				}
			}
			return errors.Join(err, p.stop())
		})
	}
	return v, group.Wait()
}

// verify verifies one bundle. An error means that the verification itself failed; faults of
// the bundle are recorded in v.
func (v *verified) verify(p *python, dir, scratch string, b *store.Bundle, key ed25519.PublicKey) error {
	data, err := os.ReadFile(filepath.Join(dir, b.Path))
	if errors.Is(err, os.ErrNotExist) {
		v.fault(b, "the file is gone")
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
		v.fault(b, err.Error())
		return nil
	}
	inPython, err := p.verify(filepath.Join(scratch, "session_proof"))
	if err != nil {
		return err
	}
	v.count(b, inGo, inPython)
	return os.RemoveAll(scratch)
}

// verifyInGo returns the fault of the bundle, "" if there is none.
func verifyInGo(data []byte, b *store.Bundle, key ed25519.PublicKey) (string, error) {
	if schema.DigestOf(data) != b.SHA256 {
		return "it is not the file that table bundles tells of", nil
	}
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{Keys: []ed25519.PublicKey{key}})
	if err != nil || report.Intact {
		return "", err
	}
	return fmt.Sprintf("%s: %s", report.Faults[0].Where, report.Faults[0].Message), nil
}

func (v *verified) count(b *store.Bundle, inGo, inPython string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, verdict := range []struct {
		fault string
		count *int
	}{{inGo, &v.golang}, {inPython, &v.python}} {
		if verdict.fault == "" {
			*verdict.count++
		} else {
			v.faults = append(v.faults, b.Path+": "+verdict.fault)
		}
	}
}

func (v *verified) fault(b *store.Bundle, what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, b.Path+": "+what)
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
			return fmt.Errorf("%s is not the verifier of this version: it is not run", member.Name)
		}
		if err := write(dir, member.Name, text); err != nil {
			return err
		}
	}
}

func write(dir, name string, text []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s lies outside the bundle", name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
