package broker_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return b
}

func connect(t *testing.T, b *broker.Broker) *stream.Client {
	t.Helper()
	client := brokertest.Connect(t, stream.Config{URL: b.URL(), MonitorURL: b.MonitorURL()})
	if err := client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// TestKilledBrokerIsRestarted: a killed broker restarts on the same port, with all acknowledged
// messages.
func TestKilledBrokerIsRestarted(t *testing.T) {
	b := start(t, broker.Config{DataDir: t.TempDir()})
	client := connect(t, b)
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	for i := range 3 {
		data := []byte{byte(i)}
		record := stream.Record{Agent: "a", Data: data, Digest: schema.DigestOf(data)}
		publishUntilTaken(t, committer, record)
		if err := syscall.Kill(b.Pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	consumer := openWhenBack(t, client)
	defer consumer.Close()
	messages, err := consumer.Fetch(t.Context(), nil, 3, 0, time.Minute)
	if err != nil || len(messages) != 3 {
		t.Errorf("%d messages, error %v", len(messages), err)
	}
}

func publishUntilTaken(t *testing.T, committer *stream.Committer, record stream.Record) {
	t.Helper()
	for {
		_, err := committer.Publish(t.Context(), []stream.Record{record})
		if err == nil {
			return
		}
		if !errors.Is(err, stream.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

func openWhenBack(t *testing.T, client *stream.Client) *stream.Consumer {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		consumer, err := client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Traces, From: 1})
		if err == nil {
			return consumer
		}
		if !errors.Is(err, stream.ErrUnavailable) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestAddressAndPasswordAreKept(t *testing.T) {
	dir := t.TempDir()
	first, err := broker.Start(t.Context(), broker.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, broker.Config{DataDir: dir})
	if second.URL() != first.URL() || second.MonitorURL() != first.MonitorURL() {
		t.Error("a restart changed the address")
	}
	connect(t, second)
}

func TestSecondBrokerIsRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, broker.Config{DataDir: dir})
	_, err := broker.Start(t.Context(), broker.Config{DataDir: dir})
	if !errors.Is(err, broker.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second broker: %v", err)
	}
}

func TestPasswordIsRequired(t *testing.T) {
	b := start(t, broker.Config{DataDir: t.TempDir()})
	_, address, _ := strings.Cut(b.URL(), "@")
	for _, url := range []string{"nats://" + address, "nats://plumbline:wrong@" + address} {
		client, err := stream.Connect(t.Context(), stream.Config{URL: url})
		if err == nil {
			t.Errorf("%s accepts any client", url)
			err = client.Close()
		}
		if err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("error %v", err)
		}
	}
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("it listens on %s", address)
	}
}

func TestOnlyTheOwnerCanReadTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "broker")
	start(t, broker.Config{DataDir: dir})
	for _, name := range []string{"", "endpoint.json", "broker.log", "lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode())
		}
	}
}

func TestStartReportsTheCause(t *testing.T) {
	if _, err := broker.Start(t.Context(), broker.Config{}); err == nil {
		t.Error("no directory: no error")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "endpoint.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), broker.Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a broken endpoint file: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), broker.Config{DataDir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file in place of the directory: %v", err)
	}
}
