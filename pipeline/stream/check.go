package stream

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/schema"
)

// nanosecondCount is a duration in the form of the monitoring pages.
type nanosecondCount int64

func (n nanosecondCount) String() string { return time.Duration(n).String() }

// checker compares one object of the broker with its required configuration.
type checker struct {
	object string
	report *Report
}

func (c checker) weak(setting string, found, wanted any, remedy string) {
	c.report.Weaknesses = append(c.report.Weaknesses, Weakness{
		Object: c.object, Setting: setting, Remedy: remedy,
		Found: plain(found), Wanted: plain(wanted),
	})
}

// plain formats a setting for people.
func plain(setting any) string {
	if text := fmt.Sprint(setting); text != "" {
		return text
	}
	return "none"
}

const (
	editStream   = "change it with the nats tool (nats stream edit)"
	remakeStream = "it cannot be changed: back the stream up, remove it and let Plumbline make it"
	editConsumer = "change it with the nats tool (nats consumer edit)"
	remakeReader = "it cannot be changed: remove the consumer and let Plumbline make it, which reads the stream again"
)

func equal[T comparable](c checker, setting string, found, wanted T, remedy string) {
	if found != wanted {
		c.weak(setting, found, wanted, remedy)
	}
}

func (c checker) atLeast(setting string, found, least int64, remedy string) {
	if found < least {
		c.weak(setting, found, fmt.Sprintf("at least %d", least), remedy)
	}
}

// unlimited checks that a limit is not set: the broker then reports 0 or -1.
func unlimited[T int | int64 | time.Duration](c checker, setting string, found T, remedy string) {
	if found > 0 {
		c.weak(setting, found, "no limit", remedy)
	}
}

func (c checker) stream(found, want jetstream.StreamConfig) {
	c.durability(found, want)
	equal(c, "discard", found.Discard, jetstream.DiscardNew, editStream)
	equal(c, "deny_delete", found.DenyDelete, true, editStream)
	equal(c, "deny_purge", found.DenyPurge, true, editStream)
	equal(c, "allow_rollup_hdrs", found.AllowRollup, false, editStream)
	equal(c, "allow_msg_ttl", found.AllowMsgTTL, false, remakeStream) // a publisher could let evidence expire unread
	equal(c, "metadata "+tenantKey, found.Metadata[tenantKey], want.Metadata[tenantKey],
		"a tenant needs a NATS account of its own")
	unlimited(c, "max_msgs_per_subject", found.MaxMsgsPerSubject, editStream)
	if found.MaxAge > 0 && found.MaxAge < leastAge {
		c.weak("max_age", found.MaxAge, fmt.Sprintf("none, or at least %v", leastAge), editStream)
	}
	if found.Duplicates < want.Duplicates {
		c.weak("duplicate_window", found.Duplicates, fmt.Sprintf("at least %v", want.Duplicates), editStream)
	}
	if found.MaxMsgSize > 0 {
		c.atLeast("max_msg_size", int64(found.MaxMsgSize), schema.MaxTraceBytes+maxHeaderBytes, editStream)
	}
	c.subjects(found, want)
}

// durability checks the settings that streams and buckets have in common.
func (c checker) durability(found, want jetstream.StreamConfig) {
	equal(c, "storage", found.Storage, jetstream.FileStorage, remakeStream)
	equal(c, "retention", found.Retention, jetstream.LimitsPolicy, remakeStream)
	equal(c, "persist_mode", found.PersistMode, jetstream.DefaultPersistMode, remakeStream)
	equal(c, "no_ack", found.NoAck, false, editStream)
	equal(c, "sealed", found.Sealed, false, remakeStream)
	c.atLeast("num_replicas", int64(found.Replicas), int64(want.Replicas), editStream)
}

func (c checker) subjects(found, want jetstream.StreamConfig) {
	if !slices.Equal(found.Subjects, want.Subjects) {
		c.weak("subjects", found.Subjects, want.Subjects, editStream)
	}
	equal(c, "subject_transform", transform(found), transform(want), remakeStream)
}

func transform(cfg jetstream.StreamConfig) string {
	if cfg.SubjectTransform == nil {
		return ""
	}
	return cfg.SubjectTransform.Source + " to " + cfg.SubjectTransform.Destination
}

func (c checker) atomic(found jetstream.StreamConfig) {
	equal(c, "allow_atomic", found.AllowAtomicPublish, true, editStream)
}

func (c checker) bucket(found jetstream.StreamConfig, want jetstream.KeyValueConfig) {
	c.durability(found, jetstream.StreamConfig{Replicas: want.Replicas})
	c.atLeast("history", found.MaxMsgsPerSubject, int64(want.History), editStream)
	switch {
	case want.TTL == 0:
		unlimited(c, "ttl", found.MaxAge, editStream)
	case found.MaxAge > 0 && found.MaxAge < want.TTL:
		c.weak("ttl", found.MaxAge, fmt.Sprintf("at least %v", want.TTL), editStream)
	}
}

func (c checker) consumer(found, want jetstream.ConsumerConfig) {
	equal(c, "ack_policy", found.AckPolicy, jetstream.AckExplicitPolicy, remakeReader)
	equal(c, "deliver_policy", found.DeliverPolicy, jetstream.DeliverAllPolicy, remakeReader)
	equal(c, "replay_policy", found.ReplayPolicy, jetstream.ReplayInstantPolicy, remakeReader)
	equal(c, "filter_subject", found.FilterSubject, want.FilterSubject, editConsumer)
	equal(c, "filter_subjects", len(found.FilterSubjects), 0, editConsumer)
	equal(c, "deliver_subject", found.DeliverSubject, "", remakeReader)
	equal(c, "headers_only", found.HeadersOnly, false, editConsumer)
	equal(c, "mem_storage", found.MemoryStorage, false, remakeReader)
	unlimited(c, "max_deliver", found.MaxDeliver, editConsumer)
	unlimited(c, "inactive_threshold", found.InactiveThreshold, editConsumer)
	if found.AckWait < want.AckWait {
		c.weak("ack_wait", found.AckWait, fmt.Sprintf("at least %v", want.AckWait), editConsumer)
	}
	c.pending(found, want)
}

func (c checker) pending(found, want jetstream.ConsumerConfig) {
	if want.MaxAckPending < 0 {
		unlimited(c, "max_ack_pending", found.MaxAckPending, editConsumer)
	} else if found.MaxAckPending > 0 {
		c.atLeast("max_ack_pending", int64(found.MaxAckPending), int64(want.MaxAckPending), editConsumer)
	}
}
