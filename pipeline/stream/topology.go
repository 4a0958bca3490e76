package stream

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
// order, and stored in the database.
const MessageRecords = "KV_" + Messages

// The durable consumers. Drift has one for each partition (DriftConsumer). The exporter has none:
// it reads RECEIPTS from its checkpoint.
const (
	VerifierConsumer   = "verifier"    // on TRACES
	DeadLetterConsumer = "deadletters" // on DEADLETTER
	CoherenceConsumer  = "coherence"   // on COHERENCE
	MessageConsumer    = "messages"    // on MessageRecords
	FindingsConsumer   = "findings"    // on ALERTS
)

// DriftConsumer returns the name of the durable consumer of TRACES for one partition.
func DriftConsumer(partition int) string { return "drift-" + strconv.Itoa(partition) }

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
		bucket(Leases, "who runs a stage that runs once", 1),
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
