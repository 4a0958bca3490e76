package stream_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestEnsureTopologyIsConcurrentAndRepeatable(t *testing.T) {
	broker := brokertest.New(t)
	var services errgroup.Group
	for range 4 {
		client := dial(t, broker, stream.Config{})
		services.Go(func() error { return client.EnsureTopology(t.Context()) })
	}
	if err := services.Wait(); err != nil {
		t.Fatal(err)
	}
	client := connect(t, broker)
	report, err := client.Inspect(t.Context())
	if err != nil || len(report.Weaknesses)+len(report.Unknown) != 0 {
		t.Fatalf("Inspect = %+v, %v", report, err)
	}
}

func TestInspectNamesWhatIsMissingAndUnknown(t *testing.T) {
	broker := brokertest.New(t)
	client := brokertest.Connect(t, stream.Config{URL: broker.URL()})
	report, err := client.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unknown) != 1 || !strings.Contains(report.Unknown[0], "sync_interval") {
		t.Errorf("unknown: %q", report.Unknown)
	}
	const streams, buckets, consumers = 7, 6, 5 + 16
	if len(report.Weaknesses) != streams+buckets+consumers {
		t.Errorf("missing: %v", report.Err())
	}
}

// weakStreams are streams that another program may have created, by the setting that must be
// refused.
var weakStreams = map[string]func(*jetstream.StreamConfig){
	"storage":                   func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
	"retention":                 func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
	"discard":                   func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	"deny_delete":               func(c *jetstream.StreamConfig) { c.DenyDelete = false },
	"deny_purge":                func(c *jetstream.StreamConfig) { c.DenyPurge = false },
	"duplicate_window":          func(c *jetstream.StreamConfig) { c.Duplicates = time.Second },
	"allow_atomic":              func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false },
	"no_ack":                    func(c *jetstream.StreamConfig) { c.NoAck, c.AllowAtomicPublish = true, false },
	"allow_msg_ttl":             func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
	"max_age":                   func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
	"max_msgs_per_subject":      func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
	"max_msg_size":              func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
	"subjects":                  func(c *jetstream.StreamConfig) { c.Subjects = []string{"aap.trace.*", "other"} },
	"subject_transform":         func(c *jetstream.StreamConfig) { c.SubjectTransform = nil },
	"metadata plumbline.tenant": func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"plumbline.tenant": "other"} },
	"persist_mode": func(c *jetstream.StreamConfig) {
		c.PersistMode, c.AllowAtomicPublish = jetstream.AsyncPersistMode, false
	},
}

func TestEnsureTopologyRefusesWeakStreams(t *testing.T) {
	broker := brokertest.New(t)
	connect(t, broker)
	js := admin(t, broker.URL())
	for setting, weaken := range weakStreams {
		t.Run(setting, func(t *testing.T) {
			cfg := goodTraces()
			weaken(&cfg)
			if err := js.DeleteStream(t.Context(), cfg.Name); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, broker, "stream TRACES", setting)
		})
	}
}

// goodTraces returns stream TRACES with its required configuration.
func goodTraces() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:     "TRACES",
		Subjects: []string{"aap.trace.*"},
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source: "aap.trace.*", Destination: "traces.{{partition(16,1)}}.{{wildcard(1)}}",
		},
		Discard:            jetstream.DiscardNew,
		Duplicates:         2 * time.Minute,
		DenyDelete:         true,
		DenyPurge:          true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{"plumbline.tenant": "default"},
	}
}

func TestEnsureTopologyAcceptsWhatTheOperatorMayChoose(t *testing.T) {
	broker := brokertest.New(t)
	cfg := goodTraces()
	cfg.MaxBytes, cfg.MaxAge, cfg.Duplicates = 1<<30, 30*24*time.Hour, 5*time.Minute
	if _, err := admin(t, broker.URL()).CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	connect(t, broker)
}

var weakConsumers = map[string]func(*jetstream.ConsumerConfig){
	"ack_policy":         func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy },
	"deliver_policy":     func(c *jetstream.ConsumerConfig) { c.DeliverPolicy = jetstream.DeliverNewPolicy },
	"max_deliver":        func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 5 },
	"ack_wait":           func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second },
	"max_ack_pending":    func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 1000 },
	"filter_subject":     func(c *jetstream.ConsumerConfig) { c.FilterSubject = "traces.1.>" },
	"headers_only":       func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true },
	"mem_storage":        func(c *jetstream.ConsumerConfig) { c.MemoryStorage = true },
	"inactive_threshold": func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour },
	"replay_policy":      func(c *jetstream.ConsumerConfig) { c.ReplayPolicy = jetstream.ReplayOriginalPolicy },
}

func TestEnsureTopologyRefusesWeakConsumers(t *testing.T) {
	broker := brokertest.New(t)
	connect(t, broker)
	js := admin(t, broker.URL())
	for setting, weaken := range weakConsumers {
		t.Run(setting, func(t *testing.T) {
			cfg := jetstream.ConsumerConfig{
				Durable: "verifier", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxAckPending: 400_000,
			}
			weaken(&cfg)
			if err := js.DeleteConsumer(t.Context(), "TRACES", "verifier"); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateConsumer(t.Context(), "TRACES", cfg); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, broker, "consumer verifier on TRACES", setting)
		})
	}
}

func TestEnsureTopologyRefusesWeakBuckets(t *testing.T) {
	broker := brokertest.New(t)
	js := admin(t, broker.URL())
	for _, c := range []struct {
		setting string
		bucket  jetstream.KeyValueConfig
	}{
		{"storage", jetstream.KeyValueConfig{Bucket: "seals", History: 16, Storage: jetstream.MemoryStorage}},
		{"history", jetstream.KeyValueConfig{Bucket: "seals", History: 1}},
		{"ttl", jetstream.KeyValueConfig{Bucket: "seals", History: 16, TTL: time.Hour}},
		{"ttl", jetstream.KeyValueConfig{Bucket: "handshakes", TTL: 10 * time.Minute}}, // forgets replays too soon
	} {
		t.Run(c.setting+" of "+c.bucket.Bucket, func(t *testing.T) {
			if err := js.DeleteKeyValue(t.Context(), c.bucket.Bucket); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
				t.Fatal(err)
			}
			if _, err := js.CreateKeyValue(t.Context(), c.bucket); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, broker, "bucket "+c.bucket.Bucket, c.setting)
			if err := js.DeleteKeyValue(t.Context(), c.bucket.Bucket); err != nil { // the next case begins without it
				t.Fatal(err)
			}
		})
	}
}

// checkRefused checks that there is exactly one weakness, and that AllowUnsafe accepts it.
func checkRefused(t *testing.T, broker *brokertest.Server, object, setting string) {
	t.Helper()
	err := dial(t, broker, stream.Config{}).EnsureTopology(t.Context())
	var weakness stream.Weakness
	if !errors.As(err, &weakness) || weakness.Object != object || weakness.Setting != setting {
		t.Errorf("EnsureTopology = %v, want the weakness %s of %s", err, setting, object)
	}
	if weakness.Found == weakness.Wanted || weakness.Remedy == "" {
		t.Errorf("the weakness does not help: %+v", weakness)
	}
	unsafe := dial(t, broker, stream.Config{AllowUnsafe: true, Logger: slog.New(slog.DiscardHandler)})
	if err := unsafe.EnsureTopology(t.Context()); err != nil {
		t.Errorf("with AllowUnsafe: %v", err)
	}
}

func TestFewerReplicasAreRefused(t *testing.T) {
	broker := brokertest.New(t)
	connect(t, broker) // creates streams with one
	err := dial(t, broker, stream.Config{Replicas: 3}).EnsureTopology(t.Context())
	var weakness stream.Weakness
	if !errors.As(err, &weakness) || weakness.Setting != "num_replicas" || weakness.Found != "1" || weakness.Wanted != "at least 3" {
		t.Errorf("EnsureTopology = %v", err)
	}
}

func TestInspectReportsTheSyncInterval(t *testing.T) {
	s := runServer(t, server.Options{HTTPHost: "127.0.0.1", HTTPPort: -1, JetStream: true})
	client := brokertest.Connect(t, stream.Config{URL: s.ClientURL(), MonitorURL: "http://" + s.MonitorAddr().String()})
	err := client.EnsureTopology(t.Context())
	var weakness stream.Weakness
	if !errors.As(err, &weakness) || weakness.Setting != "jetstream.sync_interval" {
		t.Errorf("EnsureTopology = %v", err)
	}
}

// admin returns an operator's own access to the broker.
func admin(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
