package tlog

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle writes a signed bundle and returns its path.
func bundle(t *testing.T, dir, session string) string {
	t.Helper()
	made, err := aivs.Build(&aivs.Input{SessionID: session, AgentID: "a", ExportedAt: 1_790_000_000, Part: 1, LastPart: true,
		Generator: "g", GeneratorURL: "u", Rows: aivs.SliceRows(nil)}, keyOf(9).Private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, session+".tar.gz")
	if err := os.WriteFile(path, made.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// running is a running stamper.
type running struct {
	*Stamper
	stamped chan struct{}
	failed  chan struct{}
	log     *bytes.Buffer // read it only after stop has returned
	stop    func()
}

func newStamper(t *testing.T, dir string, a *anchortest.Authority, ask Authority) *running {
	t.Helper()
	text, err := os.ReadFile(a.Roots)
	if err != nil {
		t.Fatal(err)
	}
	var trusted []*x509.Certificate
	if trusted, err = anchor.Authorities(text); err != nil {
		t.Fatal(err)
	}
	r := &running{stamped: make(chan struct{}, 100), failed: make(chan struct{}, 100), log: new(bytes.Buffer)}
	r.Stamper = &Stamper{Queue: filepath.Join(dir, "queue"), Bundles: dir, Ask: ask, Trusted: trusted,
		Log:     slog.New(slog.NewTextHandler(r.log, nil)),
		Stamped: func() { r.stamped <- struct{}{} }, Failed: func() { r.failed <- struct{}{} }}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *running) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func await(t *testing.T, events <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-events:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come within the time limit", what)
	}
}

// A bundle goes from the queue over HTTP to a stamp next to it, which openssl accepts as well.
func TestBundlesAreStamped(t *testing.T) {
	dir, authority := t.TempDir(), anchortest.New(t)
	server := httptest.NewServer(authority)
	defer server.Close()
	s := newStamper(t, dir, authority, Over(server.Client(), server.URL))
	before, later := bundle(t, dir, "before"), bundle(t, dir, "later")
	if err := s.Add("before.tar.gz"); err != nil { // added by a process that ended
		t.Fatal(err)
	}
	s.start(t)
	await(t, s.stamped, "a stamp of what waited before")
	if err := errors.Join(s.Add("later.tar.gz"), s.Add("later.tar.gz")); err != nil {
		t.Fatal(err)
	}
	await(t, s.stamped, "a stamp of the later bundle")
	s.stop()
	for _, path := range []string{before, later} {
		signature, err := signatureOf(path)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := os.ReadFile(path + ".tsr")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := anchor.VerifyTimestamp(reply, signature, s.Trusted, nil); err != nil {
			t.Error(err)
		}
		if err := authority.Verify(reply, signature); err != nil {
			t.Errorf("openssl: %v", err)
		}
	}
	if n := s.list.Len(); n > 1 { // Run may end between the stamp and the removal from the list
		t.Errorf("%d bundles are still waiting", n)
	}
}

// Whatever the authority answers, a bundle waits until it has a valid stamp.
func TestFailingAuthorityIsRetried(t *testing.T) {
	dir, authority, stranger := t.TempDir(), anchortest.New(t), anchortest.New(t)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case 2:
			stranger.ServeHTTP(w, r)
		default:
			authority.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	s := newStamper(t, dir, authority, Over(server.Client(), server.URL))
	bundle(t, dir, "s")
	if err := s.Add("s.tar.gz"); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	await(t, s.failed, "a refusal")
	if n := s.list.Len(); n != 1 {
		t.Errorf("%d bundles are waiting after a refusal", n)
	}
	await(t, s.failed, "a stamp by a stranger")
	await(t, s.stamped, "a stamp")
	s.stop()
	if !strings.Contains(s.log.String(), "503 Service Unavailable") {
		t.Errorf("the log does not give the reason:\n%s", s.log)
	}
	s.Ask = func(_ context.Context, query []byte) ([]byte, error) { return stranger.Reply(query) }
	bundle(t, dir, "other")
	if err := s.process(t.Context(), &waiting{"other.tar.gz"}); err == nil || !strings.Contains(err.Error(), "the authority's answer is not valid") {
		t.Errorf("a stamp by a stranger: %v", err)
	}
}

// A bundle that can never be stamped does not stay in the list.
func TestInvalidBundlesLeaveTheList(t *testing.T) {
	dir, authority := t.TempDir(), anchortest.New(t)
	s := newStamper(t, dir, authority, func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no request is expected") })
	broken := bundle(t, dir, "broken")
	if err := os.Truncate(broken, 100); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"broken.tar.gz", "gone.tar.gz"} {
		if err := s.process(t.Context(), &waiting{file}); err != nil {
			t.Errorf("%s waits on: %v", file, err)
		}
	}
	for _, want := range []string{"gone.tar.gz", "the bundle is not intact"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, s.log)
		}
	}
}

// After a crash between the stamp and the removal from the list, the authority is not asked
// again.
func TestExistingStampIsKept(t *testing.T) {
	dir, authority := t.TempDir(), anchortest.New(t)
	s := newStamper(t, dir, authority, func(_ context.Context, query []byte) ([]byte, error) { return authority.Reply(query) })
	bundle(t, dir, "s")
	placed := 0
	s.Placed = func(file string) error {
		if placed++; file != "s.tar.gz.tsr" {
			t.Errorf("placed is %s", file)
		}
		return nil
	}
	for range 2 {
		if err := s.process(t.Context(), &waiting{"s.tar.gz"}); err != nil {
			t.Fatal(err)
		}
		s.Ask = func(context.Context, []byte) ([]byte, error) { return nil, errors.New("a second request") }
	}
	if placed != 2 {
		t.Errorf("%d stamps were reported", placed)
	}
}

func TestWrongAnswersOverHTTP(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"want application/timestamp-reply": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") },
		"404 Not Found":                    http.NotFound,
	} {
		server := httptest.NewServer(handler)
		if _, err := Over(server.Client(), server.URL)(context.Background(), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
		server.Close()
	}
	if _, err := Over(http.DefaultClient, "http://%zz")(context.Background(), nil); err == nil {
		t.Error("no URL was asked")
	}
}
