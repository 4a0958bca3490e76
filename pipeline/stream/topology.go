package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// The streams.
const (
	Traces      = "TRACES"
	Receipts    = "RECEIPTS"
	Alerts      = "ALERTS"
	DeadLetters = "DEADLETTER"
	Ledger      = "LEDGER"
	Coherence   = "COHERENCE"
	AgentLedger = "AGENTLEDGER"
)

// The buckets.
const (
	Cards       = "cards"
	Revocations = "revocations"
	Seals       = "seals"
	Leases      = "leases"
	Messages    = "messages"
	Handshakes  = "handshakes"
)

// MessageRecords is the stream behind bucket messages. Each record is read from it once, in
// order, and stored in the database. CardRecords is the stream behind bucket cards.
const (
	MessageRecords = "KV_" + Messages
	CardRecords    = "KV_" + Cards
)

// The durable consumers, with those that only earlier versions read: the verifier's, and drift's, one
// for each partition (DriftConsumer). The exporter has none: it reads RECEIPTS from its checkpoint.
const (
	VerifierConsumer   = "verifier"    // on TRACES; read by earlier versions: the first verifier of this one begins where they ended
	DeadLetterConsumer = "deadletters" // on DEADLETTER
	CoherenceConsumer  = "coherence"   // on COHERENCE
	MessageConsumer    = "messages"    // on MessageRecords
	FindingsConsumer   = "findings"    // on ALERTS
)

// DriftConsumer returns the name of the durable consumer of TRACES for one partition.
// Earlier versions kept their position in it, and it still names the position of the partition
// (Client.ConsumerProgress).
func DriftConsumer(partition int) string { return driftPrefix + strconv.Itoa(partition) }

const driftPrefix = "drift-"

// driftPartition returns the partition of a DriftConsumer; false for another name.
func driftPartition(consumer string) (partition int, is bool) {
	number, is := strings.CutPrefix(consumer, driftPrefix)
	partition, err := strconv.Atoi(number)
	return partition, is && err == nil && partition >= 0 && partition < subject.Partitions
}

const (
	tenantKey = "plumbline.tenant" // key of the metadata of each stream

	// ackWait limits how long a message of a dead stage stays undelivered. A stage that works
	// longer sends InProgress. A sole consumer rewinds instead.
	ackWait = time.Minute
	// verifierPending is enough for several insert batches of 50,000.
	verifierPending = 400_000
	driftPending    = 100_000
	writerPending   = 20_000 // of the consumers that only store what they read

	// leastAge is the shortest accepted age limit. It leaves time to repair an outage before
	// evidence expires unread. The default is no limit.
	leastAge = 24 * time.Hour
	// keptRevisions is how many revisions of a card, revocation or seal can still be read.
	keptRevisions = 16
)

// HandshakeMemory is how long bucket handshakes remembers a message. A message is fresh from five
// minutes before its timestamp to five minutes after it. A service that forgot the message within
// those ten minutes could be made to answer it twice.
const HandshakeMemory = 15 * time.Minute

// topology is the required configuration of the broker.
type topology struct {
	streams   []jetstream.StreamConfig
	buckets   []jetstream.KeyValueConfig
	consumers []durable
}

// durable is a durable consumer and the stream that it reads.
type durable struct {
	stream string
	jetstream.ConsumerConfig
}

func (c Config) topology() topology {
	return topology{streams: c.streams(), buckets: c.buckets(), consumers: consumers()}
}

func (c Config) streams() []jetstream.StreamConfig {
	traces := c.stream(Traces, "traces as their agents published them", subject.Traces)
	traces.SubjectTransform = &jetstream.SubjectTransformConfig{
		Source:      subject.Traces,
		Destination: "traces.{{partition(16,1)}}.{{wildcard(1)}}", // 16 is subject.Partitions
	}
	return []jetstream.StreamConfig{
		traces,
		c.stream(Receipts, "what the verifier stored", wire.ReceiptPrefix+"*"),
		c.stream(Alerts, "violations, findings and drift", "aap.alert.*.*"),
		c.stream(DeadLetters, "what can never be stored, with its reason", wire.DeadLetterPrefix+">"),
		c.stream(Ledger, "events to be chained", wire.EventPrefix+">"),
		c.stream(AgentLedger, "agents' own ledgers, an entry a message", subject.Ledgers),
		c.stream(Coherence, "results of handshakes", subject.Coherences),
	}
}

// stream returns the settings that all streams share: acknowledged messages are never lost or
// removed, and a full stream refuses new ones.
func (c Config) stream(name, description, subjects string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: description,
		Subjects:    []string{subjects},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		Storage:     jetstream.FileStorage,
		Replicas:    c.Replicas,
		Duplicates:  c.DuplicateWindow,
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: true,

		AllowAtomicPublish: true,
		Metadata:           map[string]string{tenantKey: c.Tenant},
	}
}

func (c Config) buckets() []jetstream.KeyValueConfig {
	bucket := func(name, description string, history uint8) jetstream.KeyValueConfig {
		return jetstream.KeyValueConfig{
			Bucket: name, Description: description, History: history,
			Storage: jetstream.FileStorage, Replicas: c.Replicas,
		}
	}
	handshakes := bucket(Handshakes, "handshake messages answered", 1)
	handshakes.TTL = HandshakeMemory
	return []jetstream.KeyValueConfig{
		handshakes,
		bucket(Cards, "alignment cards as registered", keptRevisions),
		bucket(Revocations, "revoked cards", keptRevisions),
		bucket(Seals, "plans and outcomes of sealing", keptRevisions),
		bucket(Leases, "who runs a stage, and who owns its partitions", 1),
		bucket(Messages, "signed messages", 1),
	}
}

func consumers() []durable {
	all := []durable{
		consumer(Traces, VerifierConsumer, "", verifierPending),
		consumer(DeadLetters, DeadLetterConsumer, "", writerPending),
		consumer(Coherence, CoherenceConsumer, "", writerPending),
		consumer(MessageRecords, MessageConsumer, "", writerPending),
		consumer(Alerts, FindingsConsumer, "", writerPending),
	}
	for p := range subject.Partitions {
		all = append(all, consumer(Traces, DriftConsumer(p), subject.StoredTraces(p), driftPending))
	}
	return all
}

const jetstreamUnlimited = -1

func consumer(stream, name, filter string, pending int) durable {
	return durable{stream: stream, ConsumerConfig: jetstream.ConsumerConfig{
		Durable:       name,
		FilterSubject: filter,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    jetstreamUnlimited,
		MaxAckPending: pending,
	}}
}

// EnsureTopology creates the missing streams, buckets and consumers, and checks the existing
// ones. It changes nothing that exists. A setting below the durability requirement is an error, a
// Weakness, that names the setting. With Config.AllowUnsafe it is logged instead. Any number of
// services may call it at the same time.
func (c *Client) EnsureTopology(ctx context.Context) error {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	var report Report
	err := c.unlessRefused(ctx, func(ctx context.Context) (err error) {
		if err = c.create(ctx); err == nil {
			report, err = c.Inspect(ctx)
		}
		return err
	}, anySubject)
	var refused *refusal
	if errors.As(err, &refused) && refused.making() { // another client may be about to create it
		missing := fmt.Errorf("%s may not create what is missing (%w): run plumbline migrate --nats-url as the operator", refused.user, refused.cause)
		err = &unavailable{cause: missing, after: retrySoon}
	}
	if absent := report.absent(); err == nil && absent != nil {
		err = &unavailable{cause: absent, after: retrySoon}
	}
	if err != nil {
		return fmt.Errorf("prepare the broker: %w", err)
	}
	for _, what := range report.Unknown {
		c.cfg.Logger.Warn("a setting of the broker cannot be checked", "unknown", what)
	}
	if !c.cfg.AllowUnsafe {
		return report.Err()
	}
	for _, weakness := range report.Weaknesses {
		c.cfg.Logger.Warn("a setting of the broker is below the durability requirement", "weakness", weakness)
	}
	return nil
}

// create creates what is missing. It does not check what exists.
func (c *Client) create(ctx context.Context) error {
	var first, second errgroup.Group
	create := func(group *errgroup.Group, object string, exists error, request func(context.Context) error) {
		group.Go(func() error {
			return c.ask(ctx, func(ctx context.Context) error {
				if err := request(ctx); err != nil && !errors.Is(err, exists) {
					return fmt.Errorf("create %s: %w", object, classify(err))
				}
				return nil
			})
		})
	}
	want := c.cfg.topology()
	for _, s := range want.streams {
		create(&first, "stream "+s.Name, jetstream.ErrStreamNameAlreadyInUse, func(ctx context.Context) error {
			_, err := c.js.Stream(ctx, s.Name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				_, err = c.js.CreateStream(ctx, s)
			}
			return err
		})
	}
	for _, b := range want.buckets {
		create(&first, "bucket "+b.Bucket, jetstream.ErrBucketExists, func(ctx context.Context) error {
			_, err := c.js.KeyValue(ctx, b.Bucket)
			if errors.Is(err, jetstream.ErrBucketNotFound) {
				if _, err = c.js.CreateKeyValue(ctx, b); err == nil {
					err = c.allowBatches(ctx, b.Bucket)
				}
			}
			return err
		})
	}
	if err := first.Wait(); err != nil {
		return err
	}
	for _, d := range want.consumers {
		create(&second, "consumer "+d.Durable+" on "+d.stream, jetstream.ErrConsumerExists, func(ctx context.Context) error {
			_, err := c.js.Consumer(ctx, d.stream, d.Durable)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				_, err = c.js.CreateConsumer(ctx, d.stream, d.ConsumerConfig)
			}
			return err
		})
	}
	return second.Wait()
}

// A cluster without a leader drops requests. askWithin is how long one request may take before it
// is repeated. askPause is the pause after a transient error.
const (
	askWithin = 2 * time.Second
	askPause  = 100 * time.Millisecond
)

// ask repeats a request until it succeeds, fails with an error that is not transient, or ctx
// ends. The request must be safe to repeat.
func (c *Client) ask(ctx context.Context, request func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, askWithin)
		err := request(attempt)
		cancel()
		if !errors.Is(err, ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askPause):
		}
	}
}
