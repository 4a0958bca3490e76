package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
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
	if r.nodes == nil {
		r.nodes = map[string]bool{}
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
	var r Report
	want := c.cfg.topology()
	for _, stream := range want.streams {
		if err := c.ask(ctx, func(ctx context.Context) error { return c.inspectStream(ctx, stream, &r) }); err != nil {
			return r, err
		}
	}
	for _, bucket := range want.buckets {
		if err := c.ask(ctx, func(ctx context.Context) error { return c.inspectBucket(ctx, bucket, &r) }); err != nil {
			return r, err
		}
	}
	for _, consumer := range want.consumers {
		if err := c.ask(ctx, func(ctx context.Context) error { return c.inspectConsumer(ctx, consumer, &r) }); err != nil {
			return r, err
		}
	}
	return r, c.inspectNodes(ctx, &r)
}

func (c *Client) inspectStream(ctx context.Context, want jetstream.StreamConfig, r *Report) error {
	stream, err := c.js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.missing("stream " + want.Name)
	case err != nil:
		return fmt.Errorf("inspect stream %s: %w", want.Name, classify(err))
	default:
		r.keptBy(stream.CachedInfo().Cluster)
		check := checker{object: "stream " + want.Name, report: r}
		check.stream(stream.CachedInfo().Config, want)
		if c.knowsBatches() {
			check.atomic(stream.CachedInfo().Config)
		}
	}
	return nil
}

func (c *Client) inspectBucket(ctx context.Context, want jetstream.KeyValueConfig, r *Report) error {
	stream, err := c.js.Stream(ctx, "KV_"+want.Bucket)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.missing("bucket " + want.Bucket)
	case err != nil:
		return fmt.Errorf("inspect bucket %s: %w", want.Bucket, classify(err))
	default:
		r.keptBy(stream.CachedInfo().Cluster)
		check := checker{object: "bucket " + want.Bucket, report: r}
		check.bucket(stream.CachedInfo().Config, want)
	}
	return nil
}

func (c *Client) inspectConsumer(ctx context.Context, want durable, r *Report) error {
	consumer, err := c.js.Consumer(ctx, want.stream, want.Durable)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		r.missing("consumer " + want.Durable + " on " + want.stream)
	case err != nil:
		return fmt.Errorf("inspect consumer %s on %s: %w", want.Durable, want.stream, classify(err))
	default:
		check := checker{object: "consumer " + want.Durable + " on " + want.stream, report: r}
		check.consumer(consumer.CachedInfo().Config, want.ConsumerConfig)
	}
	return nil
}

// existence is the Setting of a Weakness for a missing object.
const existence = "existence"

func (r *Report) missing(object string) {
	r.Weaknesses = append(r.Weaknesses, Weakness{
		Object: object, Setting: existence, Found: "missing", Wanted: "present",
		Remedy: "start any service of Plumbline, which makes it",
	})
}
