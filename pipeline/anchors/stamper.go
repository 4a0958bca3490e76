package anchors

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Stamper gets time stamps for bundles. Those that wait are files in a directory,
// so that none is forgotten, and none is waited for.
type Stamper struct {
	Queue   string              // directory of the waiting; of this stamper alone
	Bundles string              // directory that bundles' names count from
	Ask     Authority           // what stamps
	Trusted []*x509.Certificate // by whose word an answer is believed
	Log     *slog.Logger
	Placed  func(file string) error // is told of each stamp's file, before it is not waited for any more; may be nil
	Stamped func()                  // is told of each stamp; may be nil
	Failed  func()                  // is told of each attempt in vain; may be nil
	Waiting func(count int)         // is told how many wait; may be nil

	woken chan struct{}
}

// Authority answers a time stamp query (RFC 3161, DER) over a bundle's signature.
type Authority func(ctx context.Context, query []byte) (reply []byte, err error)

const (
	waitingSuffix = ".waiting"
	firstPause    = time.Second
	longestPause  = 5 * time.Minute
	// mostFailures in a row are enough to leave the authority alone for a while.
	mostFailures = 3
)

// Open makes the directory. It is called before all else.
func (s *Stamper) Open() error {
	s.woken = make(chan struct{}, 1)
	if err := durable.MkdirAll(s.Queue, 0o700); err != nil {
		return fmt.Errorf("bundles waiting for a time stamp: %w", err)
	}
	return nil
}

// waiting is what the file of one that waits says.
type waiting struct {
	File string `json:"file"` // of the bundle
}

// Add notes durably that a bundle is to be stamped. It may be told twice.
func (s *Stamper) Add(file string) error {
	text, err := json.Marshal(waiting{file})
	if err == nil {
		err = durable.WriteFile(filepath.Join(s.Queue, durable.SafeName(file)+waitingSuffix), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note a bundle for its time stamp: %w", err)
	}
	select {
	case s.woken <- struct{}{}:
	default: // it will look already
	}
	return nil
}

// Run stamps what waits, until ctx ends. An authority that does not answer, or
// answers wrongly, is asked again after a pause that doubles.
func (s *Stamper) Run(ctx context.Context) error {
	pause := firstPause
	for {
		left, stamped, err := s.round(ctx)
		if err != nil {
			return err
		}
		if stamped > 0 {
			pause = firstPause
		}
		var again <-chan time.Time
		if left > 0 {
			again = time.After(pause)
			pause = min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wokenUnless(left > 0):
		case <-again:
		}
	}
}

// wokenUnless is nil while the authority is left alone: a new bundle does not cut
// the pause short.
func (s *Stamper) wokenUnless(pausing bool) <-chan struct{} {
	if pausing {
		return nil
	}
	return s.woken
}

// round tries each that waits once, in any order, and returns how many are left
// and how many are not.
func (s *Stamper) round(ctx context.Context) (left, settled int, err error) {
	names, err := s.names()
	if err != nil {
		return 0, 0, err
	}
	left = len(names)
	rand.Shuffle(left, func(i, j int) { names[i], names[j] = names[j], names[i] })
	failures := 0
	for _, name := range names {
		s.tell(s.Waiting, left)
		if failures == mostFailures {
			break
		}
		if !s.attempt(ctx, name) {
			failures++
			continue
		}
		failures = 0
		left--
	}
	s.tell(s.Waiting, left)
	return left, len(names) - left, nil
}

// attempt tells whether one that waits needs to wait no longer. A failure is told,
// unless it is only that ctx ended.
func (s *Stamper) attempt(ctx context.Context, name string) bool {
	err := s.settle(ctx, name)
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	if s.Failed != nil {
		s.Failed()
	}
	s.Log.Warn("no time stamp yet, it is asked for again", "waiting", name, "error", err)
	return false
}

func (s *Stamper) tell(whom func(int), n int) {
	if whom != nil {
		whom(n)
	}
}

func (s *Stamper) names() ([]string, error) {
	entries, err := os.ReadDir(s.Queue)
	if err != nil {
		return nil, fmt.Errorf("bundles waiting for a time stamp: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), waitingSuffix) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// settle stamps one bundle and takes it out of the queue.
func (s *Stamper) settle(ctx context.Context, name string) error {
	path := filepath.Join(s.Queue, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var w waiting
	if err := json.Unmarshal(text, &w); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	bundle := filepath.Join(s.Bundles, w.File)
	signature, err := signatureOf(bundle)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBroken):
		s.Log.Error("a bundle gets no time stamp", "bundle", bundle, "error", err)
		return durable.Remove(path)
	case err != nil:
		return err
	}
	if err := s.stamp(ctx, bundle+anchor.TimestampSuffix, signature); err != nil {
		return err
	}
	if s.Placed != nil {
		if err := s.Placed(w.File + anchor.TimestampSuffix); err != nil {
			return err
		}
	}
	return durable.Remove(path)
}

// stamp gets the answer and places it, unless a good one is there.
func (s *Stamper) stamp(ctx context.Context, path string, signature []byte) error {
	if reply, err := os.ReadFile(path); err == nil {
		if _, err := anchor.VerifyTimestamp(reply, signature, s.Trusted, nil); err == nil {
			return nil
		}
	}
	nonce, err := newNonce()
	if err != nil {
		return err
	}
	query, err := anchor.Query(signature, nonce)
	if err != nil {
		return err
	}
	reply, err := s.Ask(ctx, query)
	if err != nil {
		return err
	}
	if _, err := anchor.VerifyTimestamp(reply, signature, s.Trusted, nonce); err != nil {
		return fmt.Errorf("the authority's answer is not believed: %w", err)
	}
	if err := durable.WriteFile(path, reply, 0o644); err != nil {
		return err
	}
	if s.Stamped != nil {
		s.Stamped()
	}
	return nil
}

// errBroken says that a file is no signed bundle any more.
var errBroken = errors.New("the bundle does not hold")

// signatureOf reads the signature of a bundle that holds.
func signatureOf(bundle string) ([]byte, error) {
	file, err := os.Open(bundle)
	if err != nil {
		return nil, err
	}
	report, err := aivs.Verify(file, aivs.Options{RequireSignature: true})
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if !report.Verified {
		return nil, fmt.Errorf("%w: %s", errBroken, report.Faults[0].Message)
	}
	return report.SignatureBytes, nil
}
