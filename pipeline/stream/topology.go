package stream

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/subject"
)

const (
	tenantKey = "plumbline.tenant" // in the metadata of each stream

	// ackWait bounds how long a message of a stage that died stays unseen; a
	// stage that works longer says InProgress. A sole consumer rewinds instead.
	ackWait = time.Minute
	// verifierPending leaves room for several insert batches of 50,000.
	verifierPending = 400_000
	driftPending    = 100_000
	writerPending   = 20_000 // of the consumers that only store what they read

	// leastAge is the shortest age limit that leaves time to repair an outage
	// before evidence expires unread. No limit is the default.
	leastAge = 24 * time.Hour
	// keptRevisions of a card, revocation or seal can still be read.
	keptRevisions = 16
)

// HandshakeMemory is how long bucket handshakes remembers a message. A message is
// fresh from five minutes before its timestamp to five minutes after it: whoever
// forgot it sooner than ten minutes could be made to answer it twice.
const HandshakeMemory = 15 * time.Minute

// topology is what the broker should have.
type topology struct {
	streams   []jetstream.StreamConfig
	buckets   []jetstream.KeyValueConfig
	consumers []durable
}

// durable is a consumer and the stream it reads.
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
		c.stream(Receipts, "what the verifier stored", receiptSubject+"*"),
		c.stream(Alerts, "violations, findings and drift", "aap.alert.*.*"),
		c.stream(DeadLetters, "what can never be stored, with its reason", deadLetterSubject+">"),
		c.stream(Ledger, "events to be chained", ledgerSubject+">"),
		c.stream(AgentLedger, "agents' own ledgers, an entry a message", subject.Ledgers),
		c.stream(Coherence, "results of handshakes", subject.Coherences),
	}
}

// stream is what all streams have in common: nothing acknowledged is ever lost
// or removed, a full stream refuses what is new.
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
