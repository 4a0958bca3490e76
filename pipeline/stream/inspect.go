package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/schema"
)

// Weakness is a setting of the broker that is below the durability requirement.
type Weakness struct {
	Object  string // "stream TRACES", "consumer verifier on TRACES", "server", …
	Setting string // as the broker names it
	Found   string
	Wanted  string
	Remedy  string // what to do
}

func (w Weakness) Error() string {
	return fmt.Sprintf("%s: %s is %s, want %s: %s", w.Object, w.Setting, w.Found, w.Wanted, w.Remedy)
}

// Report is the result of Inspect.
type Report struct {
	Weaknesses []Weakness
	Unknown    []string // what could not be checked, and why

	nodes map[string]bool // names of the servers that hold a stream or bucket
}

// keptBy records which servers hold a stream: its leader and its replicas.
func (r *Report) keptBy(cluster *jetstream.ClusterInfo) {
	if cluster == nil {
		return
	}
	if cluster.Leader != "" {
		r.nodes[cluster.Leader] = true
	}
	for _, replica := range cluster.Replicas {
		r.nodes[replica.Name] = true
	}
}

// Err returns the weaknesses joined, or nil if there are none.
func (r Report) Err() error {
	all := make([]error, len(r.Weaknesses))
	for i, w := range r.Weaknesses {
		all[i] = w
	}
	return errors.Join(all...)
}

// absent returns an error that lists what is missing, or nil.
func (r *Report) absent() error {
	var all []error
	for _, w := range r.Weaknesses {
		if w.Setting == existence {
			all = append(all, w)
		}
	}
	return errors.Join(all...)
}

// Inspect compares the broker with the durability requirement. It changes nothing. A missing
// object is a weakness too.
func (c *Client) Inspect(ctx context.Context) (Report, error) {
	r := Report{nodes: map[string]bool{}}
	var first error
	want := c.cfg.topology()
	inspect := func(object string, look func(ctx context.Context, check checker) error) {
		if first != nil {
			return
		}
		first = c.ask(ctx, func(ctx context.Context) error {
			err := look(ctx, checker{object: object, report: &r})
			switch {
			case isOneOf(err, jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound):
				r.Weaknesses = append(r.Weaknesses, Weakness{
					Object: object, Setting: existence, Found: "missing", Wanted: "present",
					Remedy: "start any service of Plumbline, which creates it",
				})
			case err != nil:
				return fmt.Errorf("inspect %s: %w", object, classify(err))
			}
			return nil
		})
	}
	for _, s := range want.streams {
		inspect("stream "+s.Name, func(ctx context.Context, check checker) error {
			stream, err := c.js.Stream(ctx, s.Name)
			if err == nil {
				r.keptBy(stream.CachedInfo().Cluster)
				check.stream(stream.CachedInfo().Config, s, c.knowsBatches())
			}
			return err
		})
	}
	for _, b := range want.buckets {
		inspect("bucket "+b.Bucket, func(ctx context.Context, check checker) error {
			stream, err := c.js.Stream(ctx, "KV_"+b.Bucket)
			if err == nil {
				r.keptBy(stream.CachedInfo().Cluster)
				check.bucket(stream.CachedInfo().Config, b)
			}
			return err
		})
	}
	for _, d := range want.consumers {
		inspect("consumer "+d.Durable+" on "+d.stream, func(ctx context.Context, check checker) error {
			consumer, err := c.js.Consumer(ctx, d.stream, d.Durable)
			if err == nil {
				check.consumer(consumer.CachedInfo().Config, d.ConsumerConfig)
			}
			return err
		})
	}
	if first != nil {
		return r, first
	}
	return r, c.inspectNodes(ctx, &r)
}

// existence is the Setting of a Weakness for a missing object.
const existence = "existence"

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
	remakeStream = "it cannot be changed: back the stream up, remove it and let Plumbline create it"
	editConsumer = "change it with the nats tool (nats consumer edit)"
	remakeReader = "it cannot be changed: remove the consumer and let Plumbline create it; it then reads the stream again"
)

func equal[T comparable](c checker, setting string, found, wanted T, remedy string) {
	if found != wanted {
		c.weak(setting, found, wanted, remedy)
	}
}

func atLeast[T int | int64 | time.Duration](c checker, setting string, found, least T, remedy string) {
	if found < least {
		c.weak(setting, found, fmt.Sprintf("at least %v", least), remedy)
	}
}

// unlimited checks that a limit is not set: the broker then reports 0 or -1.
func unlimited[T int | int64 | time.Duration](c checker, setting string, found T, remedy string) {
	if found > 0 {
		c.weak(setting, found, "no limit", remedy)
	}
}

// stream compares a stream. atomic is whether the server knows atomic batches.
func (c checker) stream(found, want jetstream.StreamConfig, atomic bool) {
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
	atLeast(c, "duplicate_window", found.Duplicates, want.Duplicates, editStream)
	if found.MaxMsgSize > 0 {
		atLeast(c, "max_msg_size", int(found.MaxMsgSize), schema.MaxTraceBytes+maxHeaderBytes, editStream)
	}
	if !slices.Equal(found.Subjects, want.Subjects) {
		c.weak("subjects", found.Subjects, want.Subjects, editStream)
	}
	equal(c, "subject_transform", transform(found), transform(want), remakeStream)
	if atomic {
		equal(c, "allow_atomic", found.AllowAtomicPublish, true, editStream)
	}
}

// durability checks the settings that streams and buckets have in common.
func (c checker) durability(found, want jetstream.StreamConfig) {
	equal(c, "storage", found.Storage, jetstream.FileStorage, remakeStream)
	equal(c, "retention", found.Retention, jetstream.LimitsPolicy, remakeStream)
	equal(c, "persist_mode", found.PersistMode, jetstream.DefaultPersistMode, remakeStream)
	equal(c, "no_ack", found.NoAck, false, editStream)
	equal(c, "sealed", found.Sealed, false, remakeStream)
	atLeast(c, "num_replicas", found.Replicas, want.Replicas, editStream)
}

func transform(cfg jetstream.StreamConfig) string {
	if cfg.SubjectTransform == nil {
		return ""
	}
	return cfg.SubjectTransform.Source + " to " + cfg.SubjectTransform.Destination
}

func (c checker) bucket(found jetstream.StreamConfig, want jetstream.KeyValueConfig) {
	c.durability(found, jetstream.StreamConfig{Replicas: want.Replicas})
	atLeast(c, "history", found.MaxMsgsPerSubject, int64(want.History), editStream)
	if want.TTL == 0 {
		unlimited(c, "ttl", found.MaxAge, editStream)
	} else if found.MaxAge > 0 {
		atLeast(c, "ttl", found.MaxAge, want.TTL, editStream)
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
	atLeast(c, "ack_wait", found.AckWait, want.AckWait, editConsumer)
	if want.MaxAckPending < 0 {
		unlimited(c, "max_ack_pending", found.MaxAckPending, editConsumer)
	} else if found.MaxAckPending > 0 {
		atLeast(c, "max_ack_pending", found.MaxAckPending, want.MaxAckPending, editConsumer)
	}
}

// reasons explains, for each setting that Inspect checks, why it matters (docs/GUARANTEES.md).
var reasons = map[string]string{
	"existence":               "nothing can be stored there",
	"max_payload":             "the largest trace that the specification allows would be refused",
	"jetstream.sync_interval": "a power failure loses what was acknowledged since the last sync",
	"discard":                 "a full stream must refuse what is new, not drop old evidence for it",
	"deny_delete":             "the database can be rebuilt from the stream only if nothing is deleted there",
	"deny_purge":              "the database can be rebuilt from the stream only if nothing is purged there",
	"allow_rollup_hdrs":       "a publisher could remove what others have published",
	"allow_msg_ttl":           "a publisher could let a trace expire before it is read",
	"metadata " + tenantKey:   "two tenants would share one stream",
	"max_msgs_per_subject":    "an agent's older traces would be dropped",
	"max_age":                 "what expires before it is read is lost",
	"duplicate_window":        "what a publisher repeats would be stored twice in the stream",
	"max_msg_size":            "the largest trace that the specification allows would be refused",
	"subjects":                "what is published on a missing subject is lost; what is published on another one cannot be decoded",
	"subject_transform":       "agents' traces would not be spread over partitions in order",
	"storage":                 "memory does not survive a restart",
	"retention":               "what one consumer has acknowledged would be gone for the others",
	"persist_mode":            "the ack would be sent before the message is on disk",
	"no_ack":                  "publishers would not learn whether their traces are stored",
	"sealed":                  "nothing can be published",
	"num_replicas":            "one disk is one copy",
	"allow_atomic":            "traces would be published one by one, with a disk sync for each",
	"history":                 "earlier versions of a card or seal would be forgotten",
	"ttl":                     "a message that is forgotten too soon could be answered or decided twice",
	"ack_policy":              "a message counts as done before it is stored",
	"deliver_policy":          "what was published before the consumer was made is never read",
	"replay_policy":           "messages would be delivered as slowly as they were published",
	"filter_subject":          "some messages would not be read, or others would",
	"filter_subjects":         "some messages would not be read, or others would",
	"deliver_subject":         "messages would be pushed faster than they can be stored",
	"headers_only":            "messages would come without their data",
	"mem_storage":             "acks would be forgotten at a restart",
	"max_deliver":             "a message that cannot be stored for a while would no longer be delivered",
	"inactive_threshold":      "the broker would forget the position of a stage that is down for a while",
	"ack_wait":                "a message that is being processed would be delivered to another process",
	"max_ack_pending":         "the verifier could not fill its batches",
}

// Why returns why the setting matters.
func (w Weakness) Why() string { return reasons[w.Setting] }

// leastPayload is what the broker must accept: the largest trace with headers.
const leastPayload = 1 << 20

const raisePayload = "set max_payload in the server's configuration"

// node is the relevant part of a server's monitoring page /varz.
type node struct {
	Name       string `json:"server_name"`
	MaxPayload int64  `json:"max_payload"`
	JetStream  struct {
		Config *struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
	} `json:"jetstream"`
}

// inspectNodes checks the settings of whole servers, on each server whose monitoring pages are
// configured. A server that does not answer is reported as unknown as long as another one
// answers: a cluster works without it, and so does this client.
func (c *Client) inspectNodes(ctx context.Context, r *Report) error {
	connected := checker{object: "server " + c.conn.ConnectedServerName(), report: r}
	atLeast(connected, "max_payload", c.conn.MaxPayload(), leastPayload, raisePayload)
	unread := map[string]bool{c.conn.ConnectedServerName(): true}
	maps.Copy(unread, r.nodes)
	var silent []error
	addresses := strings.FieldsFunc(c.cfg.MonitorURL, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, address := range addresses {
		n, err := readNode(ctx, address)
		if err != nil {
			silent = append(silent, err)
			continue
		}
		delete(unread, n.Name)
		check := checker{object: "server " + n.Name, report: r}
		if n.Name != c.conn.ConnectedServerName() {
			atLeast(check, "max_payload", n.MaxPayload, leastPayload, raisePayload)
		}
		if !n.JetStream.Config.SyncAlways {
			check.weak("jetstream.sync_interval", n.JetStream.Config.SyncInterval, "always", "set sync_interval: always in the server's jetstream block")
		}
	}
	if len(addresses) > 0 && len(silent) == len(addresses) {
		return errors.Join(silent...)
	}
	for _, err := range silent {
		r.Unknown = append(r.Unknown, "a server: "+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		r.Unknown = append(r.Unknown, fmt.Sprintf("jetstream.sync_interval of server %s: set its monitor_url to have it checked; "+
			"unless it is \"always\", a power failure loses acknowledged traces", name))
	}
	return nil
}

func readNode(ctx context.Context, address string) (n node, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/varz", nil)
	if err != nil {
		return n, errors.New("broker.monitor_url: want http://host:port, several separated by commas") // the path may be secret
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	answer, err := http.DefaultClient.Do(request.WithContext(ctx))
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // this error does not contain the address
	}
	if err != nil {
		return n, fmt.Errorf("read the broker's settings at %s: %w", request.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return n, fmt.Errorf("read the broker's settings at %s: broker.monitor_url answers %s", request.URL.Host, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&n); err != nil {
		return n, fmt.Errorf("read the broker's settings at %s: %w", request.URL.Host, err)
	}
	if n.JetStream.Config == nil {
		return n, fmt.Errorf("read the broker's settings at %s: server %s has no JetStream", request.URL.Host, n.Name)
	}
	return n, nil
}
