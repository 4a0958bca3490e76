package embedded

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
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

// Without the package's own check, the caller would wait for ReadyWithin.
func TestUsedPortEndsTheStart(t *testing.T) {
	dir := t.TempDir()
	at, err := Assign(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", address(at.Host, at.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	begun := time.Now()
	_, err = Start(dir, at, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("start on a port that is taken: %v", err)
	}
	if took := time.Since(begun); took > ReadyWithin/2 {
		t.Errorf("the start took %v to fail", took)
	}
}

// A loss of power while a stream is created or changed leaves its settings without a
// checksum, with the checksum of the previous settings, or not at all. Such a stream is
// repaired or created again, and starts. A stream with messages is never removed.
func TestInterruptedStreamCreationIsRepaired(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	at, err := Assign(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	withServer := func(work func(jetstream.JetStream) error) (health string) {
		s, err := Start(dir, at, nil, log)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := nats.Connect(at.URL())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(conn)
		if err == nil {
			err = work(js)
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
	health := withServer(func(js jetstream.JetStream) error {
		for _, name := range []string{"whole", "half", "bare", "changed", "kept"} {
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
				return err
			}
			if name == "half" || name == "bare" {
				continue
			}
			if _, err := js.Publish(t.Context(), name, []byte("a message")); err != nil {
				return err
			}
		}
		return nil
	})
	if health != "" {
		t.Fatal(health)
	}
	file := func(parts ...string) string {
		return filepath.Join(append([]string{dir, "jetstream", "$G", "streams"}, parts...)...)
	}
	for _, path := range []string{file("half", "meta.sum"), file("bare", "meta.sum"), file("bare", "meta.inf"), file("kept", "meta.inf")} {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := os.ReadFile(file("changed", "meta.inf"))
	if err == nil {
		err = os.WriteFile(file("changed", "meta.inf"), bytes.Replace(settings, []byte(`"max_msgs":-1`), []byte(`"max_msgs":77`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(jetstream.JetStream) error { return nil }
	if health := withServer(nothing); !strings.Contains(health, "kept' could not be recovered") {
		t.Errorf("with a stream that has messages and no settings: %q", health)
	}
	if err := os.Rename(file("kept", "meta.inf.away"), file("kept", "meta.inf")); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	health = withServer(func(js jetstream.JetStream) error {
		for info := range js.ListStreams(t.Context()).Info() {
			found[info.Config.Name] = fmt.Sprint(info.State.Msgs, " of ", info.Config.MaxMsgs)
		}
		return nil
	})
	want := map[string]string{"whole": "1 of -1", "half": "0 of -1", "changed": "1 of 77", "kept": "1 of -1"}
	if health != "" || !maps.Equal(found, want) {
		t.Errorf("health %q, streams %v, want %v", health, found, want)
	}
}
