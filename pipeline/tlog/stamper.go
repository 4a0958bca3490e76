package tlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/outbox"
)

// Stamper requests time stamps for bundles. The waiting bundles are a list on disk, so none is
// lost. Sealing does not wait for the authority.
type Stamper struct {
	Queue   string              // directory of the list; used by this stamper alone
	Bundles string              // base directory of the bundles' names
	Ask     Authority           // the time stamping authority
	Trusted []*x509.Certificate // certificates that an answer must be signed under
	Log     *slog.Logger
	Placed  func(file string) error // called with each stamp's file, before its bundle leaves the list; optional
	Stamped func()                  // called after each stamp; optional
	Failed  func()                  // called after each failed attempt; optional
	Waiting func(count int)         // called with the number of waiting bundles; optional

	list outbox.List[waiting]
}

// Authority answers a time stamp query (RFC 3161, DER) over a bundle's signature.
type Authority func(ctx context.Context, query []byte) (reply []byte, err error)

// waiting is a bundle that waits for its stamp.
type waiting struct {
	File string `json:"file"`
}

// Open opens the list. Call it before any other method.
func (s *Stamper) Open() error {
	s.list = outbox.List[waiting]{
		Name: "time stamps", Dir: s.Queue, Process: s.process, Parallel: 1, Log: s.Log, Failed: s.Failed, Waiting: s.Waiting,
	}
	return s.list.Open()
}

// Add durably adds bundles to the list. A bundle may be added twice.
func (s *Stamper) Add(files ...string) error {
	items := make([]waiting, len(files))
	for i, file := range files {
		items[i].File = file
	}
	return s.list.Add(items...)
}

// Waiting returns the bundles in a stamper's queue that still wait for their stamp. The stamper
// may be running.
func Waiting(queue string) (map[string]bool, error) {
	items, err := outbox.Read[waiting](queue)
	if err != nil {
		return nil, fmt.Errorf("read the bundles that wait for a time stamp: %w", err)
	}
	files := make(map[string]bool, len(items))
	for _, item := range items {
		files[item.File] = true
	}
	return files, nil
}

// Run stamps the waiting bundles until ctx ends.
func (s *Stamper) Run(ctx context.Context) error { return s.list.Run(ctx) }

// process stamps one bundle. It logs a bundle that can never be stamped and returns nil for it, so
// the bundle leaves the list.
func (s *Stamper) process(ctx context.Context, w *waiting) error {
	bundle := filepath.Join(s.Bundles, w.File)
	signature, err := signatureOf(bundle)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBroken):
		s.Log.Error("a bundle cannot be time stamped, skipped", "bundle", bundle, "error", err)
		return nil
	case err != nil:
		return err
	}
	if err := s.stamp(ctx, bundle+anchor.TimestampSuffix, signature); err != nil || s.Placed == nil {
		return err
	}
	return s.Placed(w.File + anchor.TimestampSuffix)
}

// stamp requests a stamp and writes it, unless a valid one exists.
func (s *Stamper) stamp(ctx context.Context, path string, signature []byte) error {
	if reply, err := os.ReadFile(path); err == nil {
		if _, err := anchor.VerifyTimestamp(reply, signature, s.Trusted, nil); err == nil {
			return nil
		}
	}
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64)) // 64 random bits
	if err != nil {
		return fmt.Errorf("nonce: %w", err)
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
		return fmt.Errorf("the authority's answer is not valid: %w", err)
	}
	if err := durable.WriteFile(path, reply, 0o644); err != nil {
		return err
	}
	if s.Stamped != nil {
		s.Stamped()
	}
	return nil
}

// errBroken says that a file is no longer a valid signed bundle.
var errBroken = errors.New("the bundle is not intact")

// signatureOf returns the signature of a bundle after verifying the bundle.
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

// askTimeout bounds one request to an authority.
const askTimeout = 30 * time.Second

// Over returns the authority at a URL (RFC 3161 section 3.4).
func Over(client *http.Client, url string) Authority {
	return func(ctx context.Context, query []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(query))
		if err != nil {
			return nil, fmt.Errorf("request a time stamp: %w", err)
		}
		request.Header.Set("Content-Type", anchor.QueryType)
		request.Header.Set("Accept", anchor.ReplyType)
		answer, err := client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("request a time stamp: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		reply, err := io.ReadAll(io.LimitReader(answer.Body, anchor.MaxReply+1))
		switch kind := answer.Header.Get("Content-Type"); {
		case err != nil:
			return nil, fmt.Errorf("request a time stamp: %w", err)
		case answer.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("request a time stamp: the authority answered %s", answer.Status)
		case !strings.HasPrefix(kind, anchor.ReplyType):
			return nil, fmt.Errorf("request a time stamp: the authority answered with type %.80q, want %s", kind, anchor.ReplyType)
		}
		return reply, nil
	}
}
