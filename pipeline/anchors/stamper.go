package anchors

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/worklist"
)

// Stamper gets time stamps for bundles. Those that wait are a list on disk, so that
// none is forgotten, and none is waited for.
type Stamper struct {
	Queue   string              // directory of the list; of this stamper alone
	Bundles string              // directory that bundles' names count from
	Ask     Authority           // what stamps
	Trusted []*x509.Certificate // by whose word an answer is believed
	Log     *slog.Logger
	Placed  func(file string) error // is told of each stamp's file, before its bundle leaves the list; may be nil
	Stamped func()                  // is told of each stamp; may be nil
	Failed  func()                  // is told of each attempt in vain; may be nil
	Waiting func(count int)         // is told how many wait; may be nil

	list worklist.List[waiting]
}

// Authority answers a time stamp query (RFC 3161, DER) over a bundle's signature.
type Authority func(ctx context.Context, query []byte) (reply []byte, err error)

// waiting is a bundle that waits for its stamp.
type waiting struct {
	File string `json:"file"`
}

// Open opens the list. It is called before all else.
func (s *Stamper) Open() error {
	s.list = worklist.List[waiting]{
		Name: "time stamps", Dir: s.Queue, Settle: s.settle, Parallel: 1, Log: s.Log, Failed: s.Failed, Waiting: s.Waiting,
	}
	return s.list.Open()
}

// Add notes durably that bundles are to be stamped. They may be told twice.
func (s *Stamper) Add(files ...string) error {
	items := make([]waiting, len(files))
	for i, file := range files {
		items[i].File = file
	}
	return s.list.Add(items...)
}

// Waiting returns the bundles that wait for their stamp in a stamper's queue, which
// may be at work.
func Waiting(queue string) (map[string]bool, error) {
	items, err := worklist.Read[waiting](queue)
	if err != nil {
		return nil, fmt.Errorf("read what waits for a time stamp: %w", err)
	}
	files := make(map[string]bool, len(items))
	for _, item := range items {
		files[item.File] = true
	}
	return files, nil
}

// Run stamps what waits, until ctx ends.
func (s *Stamper) Run(ctx context.Context) error { return s.list.Run(ctx) }

// settle stamps one bundle. One that no authority can help is told, and done with.
func (s *Stamper) settle(ctx context.Context, w *waiting) error {
	bundle := filepath.Join(s.Bundles, w.File)
	signature, err := signatureOf(bundle)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBroken):
		s.Log.Error("a bundle gets no time stamp", "bundle", bundle, "error", err)
		return nil
	case err != nil:
		return err
	}
	if err := s.stamp(ctx, bundle+anchor.TimestampSuffix, signature); err != nil || s.Placed == nil {
		return err
	}
	return s.Placed(w.File + anchor.TimestampSuffix)
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
	if !report.Intact {
		return nil, fmt.Errorf("%w: %s", errBroken, report.Faults[0].Message)
	}
	return report.SignatureBytes, nil
}
