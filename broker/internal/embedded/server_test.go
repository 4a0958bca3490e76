package embedded

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The server itself would keep the caller waiting for readyWithin.
func TestPortThatIsTakenEndsTheStart(t *testing.T) {
	dir := t.TempDir()
	at, err := Settle(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", address(at.Host, at.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	begun := time.Now()
	_, err = Start(dir, at, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("start on a port that is taken: %v", err)
	}
	if took := time.Since(begun); took > readyWithin/2 {
		t.Errorf("the start took %v to fail", took)
	}
}

// A loss of power while a stream is being made leaves one of its two files of settings, or
// none. Such a stream is made again. One that has messages is never removed.
func TestStreamsThatWereNotMadeToTheirEnd(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	at, err := Settle(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	making := func(streams ...string) (health string) {
		s, err := Start(dir, at, log)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := nats.Connect(at.URL())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(conn)
		for _, name := range streams {
			if err == nil {
				_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}})
			}
		}
		if err == nil && len(streams) > 0 {
			_, err = js.Publish(t.Context(), "kept", []byte("a message"))
		}
		if err != nil {
			t.Fatal(err)
		}
		health = s.nats.Healthz(&server.HealthzOptions{}).Error
		conn.Close()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		return health
	}
	if health := making("whole", "half", "bare", "kept"); health != "" {
		t.Fatal(health)
	}
	stream := func(parts ...string) string {
		return filepath.Join(append([]string{dir, "jetstream", "$G", "streams"}, parts...)...)
	}
	for _, path := range []string{stream("half", "meta.sum"), stream("bare", "meta.sum"), stream("bare", "meta.inf"), stream("kept", "meta.sum")} {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if health := making(); !strings.Contains(health, "kept' could not be recovered") {
		t.Errorf("with a stream that has messages and no settings: %q", health)
	}
	if err := os.Rename(stream("kept", "meta.sum.away"), stream("kept", "meta.sum")); err != nil {
		t.Fatal(err)
	}
	if health := making(); health != "" {
		t.Error(health)
	}
	left, err := os.ReadDir(stream())
	if err != nil || fmt.Sprint(left) != "[d kept/ d whole/]" {
		t.Errorf("left are %v, %v", left, err)
	}
}
