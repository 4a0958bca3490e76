package stream_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

func TestConfigReportsEveryFault(t *testing.T) {
	err := stream.Config{
		URL: "nowhere", User: "u", Token: "t", CertFile: "c", Replicas: 9, DuplicateWindow: time.Second, InboxPrefix: "_INBOX.>",
	}.Validate()
	for _, key := range []string{"url", "credentials_file", "cert_file", "replicas", "duplicate_window", "inbox_prefix"} {
		if err == nil || !strings.Contains(err.Error(), "broker."+key+":") {
			t.Errorf("%s is not named: %v", key, err)
		}
	}
	for _, prefix := range []string{".", "a.", ".a", "a..b", "a.*", "*", "a b", "$JS.API", "$KV"} {
		if subject.CheckInboxPrefix(prefix) == nil {
			t.Errorf("inbox prefix %q is accepted", prefix)
		}
	}
	if err := (stream.Config{URL: "nats://a:4222, tls://b:4222", InboxPrefix: stream.AgentInbox("did:web:a")}).Validate(); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if _, err := stream.Connect(t.Context(), stream.Config{}); err == nil {
		t.Error("Connect does not validate")
	}
}

func TestConnectLogsIn(t *testing.T) {
	broker := brokertest.New(t)
	u, err := url.Parse(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	cfg := stream.Config{URL: "nats://" + u.Host, User: u.User.Username(), Password: password}
	client, err := stream.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.Ping(t.Context()), client.Close()); err != nil {
		t.Error(err)
	}
	for name, weaken := range map[string]func(*stream.Config){
		"wrong password":  func(c *stream.Config) { c.Password = "secret" },
		"token":           func(c *stream.Config) { c.User, c.Password, c.Token = "", "", "secret" },
		"no credentials":  func(c *stream.Config) { c.User, c.CredentialsFile = "", filepath.Join(t.TempDir(), "none") },
		"no seed":         func(c *stream.Config) { c.User, c.NKeySeedFile = "", filepath.Join(t.TempDir(), "none") },
		"no certificates": func(c *stream.Config) { c.CAFile = filepath.Join(t.TempDir(), "none") },
	} {
		other := cfg
		weaken(&other)
		_, err := stream.Connect(t.Context(), other)
		if err == nil || errors.Is(err, stream.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConnectToNobody(t *testing.T) {
	broker := brokertest.New(t)
	broker.Stop()
	_, err := stream.Connect(t.Context(), stream.Config{URL: broker.URL()})
	if !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	u, bad := url.Parse(broker.URL())
	if bad != nil {
		t.Fatal(bad)
	}
	if password, _ := u.User.Password(); strings.Contains(err.Error(), password) {
		t.Error("the error shows the password")
	}
}

// Errors never contain a secret, in whatever form it was configured.
func TestErrorsContainNoSecret(t *testing.T) {
	for _, address := range []string{"nats://s3cret@127.0.0.1:1", "nats://u:s3cret@127.0.0.1:1", "nats://a@127.0.0.1:1, nats://u:s3cret@127.0.0.1:1",
		"nats://u:s3%63ret@127.0.0.1:1", "nats://u:s3cret%zz@127.0.0.1:1", "u:s3cret@127.0.0.1:1", "nats://u:s3cret@127.0.0.1:port"} {
		_, err := stream.Connect(t.Context(), stream.Config{URL: address})
		if err == nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: %v", address, err)
		}
	}
	broker := brokertest.New(t)
	dial(t, broker, stream.Config{}) // creates the streams
	for _, monitor := range []string{"http://127.0.0.1:1/s3cret", broker.MonitorURL() + "/s3cret"} {
		client, err := stream.Connect(t.Context(), stream.Config{URL: broker.URL(), MonitorURL: monitor})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Inspect(t.Context())
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", monitor, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPingOfLostBroker(t *testing.T) {
	broker := brokertest.New(t)
	client := dial(t, broker, stream.Config{Timeout: 300 * time.Millisecond})
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	broker.Stop()
	if err := client.Ping(t.Context()); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
