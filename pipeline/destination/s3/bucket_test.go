package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/pipeline/destination"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
	"github.com/plumbline/plumbline/pipeline/destination/s3/s3test"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"))
}

func open(t *testing.T, cfg s3.Config) *s3.Bucket {
	t.Helper()
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	b, err := s3.Open(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func deliver(ctx context.Context, b *s3.Bucket, name, text string) error {
	return b.Deliver(ctx, name, schema.DigestOf([]byte(text)).String(), strings.NewReader(text))
}

// holds requires that the bucket has this object and no other.
func holds(t *testing.T, s *s3test.Server, name, text string) {
	t.Helper()
	if objects := s.Objects(); len(objects) != 1 || objects[name] != text {
		t.Errorf("the bucket has %d objects; %s is %.40q", len(objects), name, objects[name])
	}
}

// An object is stored once, and an existing object is left unchanged.
func TestObjectIsStoredOnce(t *testing.T) {
	s := s3test.New(t)
	cfg := s.Config()
	cfg.Prefix = "evidence/2026"
	b := open(t, cfg)
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := deliver(t.Context(), b, "a/x.tar.gz", "content"); err != nil {
			t.Fatal(err)
		}
	}
	err := deliver(t.Context(), b, "a/x.tar.gz", "another")
	for _, want := range []string{"evidence/2026/a/x.tar.gz", schema.DigestOf([]byte("content")).String(), schema.DigestOf([]byte("another")).String()} {
		if !errors.Is(err, destination.ErrTaken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s named", err, want)
		}
	}
	holds(t, s, "evidence/2026/a/x.tar.gz", "content")
}

// The store is given the SHA-256, and refuses other contents.
func TestStoreChecksTheDigest(t *testing.T) {
	s := s3test.New(t)
	b := open(t, s.Config())
	err := b.Deliver(t.Context(), "x", schema.DigestOf([]byte("what was sealed")).String(), strings.NewReader("what is sent"))
	if err == nil || !strings.Contains(err.Error(), "BadDigest") {
		t.Errorf("%v, want the store's refusal", err)
	}
	if objects := s.Objects(); len(objects) != 0 {
		t.Errorf("the bucket has %v", objects)
	}
}

func TestLargeObject(t *testing.T) {
	s := s3test.New(t)
	text := strings.Repeat("0123456789abcdef", 2<<20) // 32 MiB, which clients send in parts if they may
	if err := deliver(t.Context(), open(t, s.Config()), "large", text); err != nil {
		t.Fatal(err)
	}
	holds(t, s, "large", text)
}

// Errors name the setting that is wrong.
func TestErrorsSayWhatToDo(t *testing.T) {
	s := s3test.New(t)
	right := s.Config()
	missing := right
	missing.Bucket = "nowhere"
	for want, cfg := range map[string]s3.Config{
		"the store does not accept the credentials in " + right.CredentialsFile: s3test.Config(t, s.Address, "wrong"),
		`bucket "nowhere" does not exist: create it, or set s3_create_bucket`:   missing,
	} {
		if want = strings.ReplaceAll(want, right.CredentialsFile, cfg.CredentialsFile); !strings.Contains(said(t, cfg), want) {
			t.Errorf("%s\nwant: %s", said(t, cfg), want)
		}
	}
	missing.CreateBucket = true
	if err := open(t, missing).Ready(t.Context()); err != nil {
		t.Errorf("the bucket is not created: %v", err)
	}
	missing.CreateBucket = false
	if err := open(t, missing).Ready(t.Context()); err != nil {
		t.Errorf("the bucket was not created: %v", err)
	}
}

// said returns what Ready and Deliver report about a bucket that cannot be used. Neither contains
// the secret.
func said(t *testing.T, cfg s3.Config) string {
	t.Helper()
	b := open(t, cfg)
	ready, delivered := b.Ready(t.Context()), deliver(t.Context(), b, "x", "content")
	if ready == nil || delivered == nil {
		t.Fatalf("%v, %v, want errors", ready, delivered)
	}
	text := ready.Error() + "\n" + delivered.Error()
	if strings.Contains(text, s3test.Secret) || strings.Contains(text, "wrong") {
		t.Errorf("the secret is in %s", text)
	}
	return text
}

// Credentials that were replaced in the file are used without a restart.
func TestCredentialsAreReadAgain(t *testing.T) {
	s := s3test.New(t)
	cfg := s3test.Config(t, s.Address, "wrong")
	b := open(t, cfg)
	if err := b.Ready(t.Context()); err == nil {
		t.Fatal("the wrong secret is accepted")
	}
	right, err := os.ReadFile(s3test.Config(t, s.Address, s3test.Secret).CredentialsFile)
	if err == nil {
		err = os.WriteFile(cfg.CredentialsFile, right, 0o600)
	}
	if err := errors.Join(err, b.Ready(t.Context())); err != nil {
		t.Error(err)
	}
}

// between returns the configuration of a proxy in front of a server, which handles each request
// with treat.
func between(t *testing.T, s *s3test.Server, treat func(w http.ResponseWriter, r *http.Request, pass http.Handler)) s3.Config {
	t.Helper()
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.Address})
		r.Out.Host = r.In.Host // the signature covers it
	}, ErrorLog: log.New(io.Discard, "", 0)}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { treat(w, r, pass) })}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return s3test.Config(t, listener.Addr().String(), s3test.Secret)
}

// A PUT whose answer was lost has succeeded: the next attempt detects that.
func TestLostAnswer(t *testing.T) {
	s := s3test.New(t)
	var puts atomic.Int64
	b := open(t, between(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && puts.Add(1) == 1 {
			pass.ServeHTTP(discard{}, r)
			panic(http.ErrAbortHandler) // the connection breaks
		}
		pass.ServeHTTP(w, r)
	}))
	if err := deliver(t.Context(), b, "x", "content"); err == nil {
		t.Fatal("no error, although the answer was lost")
	}
	holds(t, s, "x", "content")
	if err := deliver(t.Context(), b, "x", "content"); err != nil || puts.Load() != 1 {
		t.Errorf("%v after %d PUTs", err, puts.Load())
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// A server that is killed during an upload has no object with the name, and accepts it after its
// restart.
func TestServerKilledDuringUpload(t *testing.T) {
	s := s3test.New(t)
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() { s.Kill(); close(killed) })
	b := open(t, between(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut {
			r.Body = &tripwire{ReadCloser: r.Body, left: 4 << 20, trip: kill}
		}
		pass.ServeHTTP(w, r)
	}))
	text := strings.Repeat("x", 8<<20)
	if err := deliver(t.Context(), b, "x", text); err == nil {
		t.Fatal("the server did not receive all of it")
	}
	<-killed
	s.Start()
	if objects := s.Objects(); len(objects) != 0 {
		t.Errorf("the bucket has %d objects", len(objects))
	}
	if err := deliver(t.Context(), open(t, s.Config()), "x", text); err != nil {
		t.Fatal(err)
	}
	holds(t, s, "x", text)
}

// tripwire calls a function once a number of bytes has been read.
type tripwire struct {
	io.ReadCloser
	left int
	trip func()
}

func (r *tripwire) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.left -= n; r.left <= 0 {
		r.trip()
	}
	return n, err
}

// When two writers store at the same time, one succeeds and the other finds the object.
func TestNameTakenDuringTheRequest(t *testing.T) {
	for _, other := range []string{"content", "another"} {
		s := s3test.New(t)
		direct := open(t, s.Config())
		var once atomic.Bool
		b := open(t, between(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			if r.Method == http.MethodPut && !once.Swap(true) {
				if r.Header.Get("If-None-Match") != "*" {
					t.Error("the PUT is not conditional")
				}
				if err := deliver(r.Context(), direct, "x", other); err != nil {
					t.Error(err)
				}
			}
			pass.ServeHTTP(w, r)
		}))
		if err := deliver(t.Context(), b, "x", "content"); (err == nil) != (other == "content") || err != nil && !errors.Is(err, destination.ErrTaken) {
			t.Errorf("with the existing %q: %v", other, err)
		}
		holds(t, s, "x", other)
	}
}

// A store that does not support conditions gets the PUT without one.
func TestStoreWithoutConditionalPuts(t *testing.T) {
	s := s3test.New(t)
	b := open(t, between(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Header.Get("If-None-Match") == "" {
			pass.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNotImplemented)
		_, _ = io.Copy(w, bytes.NewBufferString(`<Error><Code>NotImplemented</Code><Message>If-None-Match</Message></Error>`))
	}))
	if err := deliver(t.Context(), b, "x", "content"); err != nil {
		t.Fatal(err)
	}
	if err := deliver(t.Context(), b, "x", "another"); !errors.Is(err, destination.ErrTaken) {
		t.Error(err)
	}
	holds(t, s, "x", "content")
}
