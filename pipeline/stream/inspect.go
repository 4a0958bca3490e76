package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/nats-io/nats.go/jetstream"
)

// leastPayload is what the broker must accept: the largest trace with headers.
const leastPayload = 1 << 20

// Weakness is a setting of the broker under which the promise does not hold.
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

// Report is the outcome of Inspect.
type Report struct {
	Weaknesses []Weakness
	Unknown    []string // what could not be found out, and why
}

// Err joins the weaknesses, nil when there are none.
func (r Report) Err() error {
	all := make([]error, len(r.Weaknesses))
	for i, w := range r.Weaknesses {
		all[i] = w
	}
	return errors.Join(all...)
}

// absent returns what is missing, joined; nil when nothing is.
func (r *Report) absent() error {
	var all []error
	for _, w := range r.Weaknesses {
		if w.Setting == existence {
			all = append(all, w)
		}
	}
	return errors.Join(all...)
}

// Inspect compares the broker with what the promise needs and changes nothing.
// What is missing is a weakness too.
func (c *Client) Inspect(ctx context.Context) (Report, error) {
	var r Report
	if err := c.inspectServer(ctx, &r); err != nil {
		return r, err
	}
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
	return r, nil
}

func (c *Client) inspectStream(ctx context.Context, want jetstream.StreamConfig, r *Report) error {
	stream, err := c.js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.missing("stream " + want.Name)
	case err != nil:
		return fmt.Errorf("inspect stream %s: %w", want.Name, classify(err))
	default:
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

// existence is the setting of what is missing.
const existence = "existence"

func (r *Report) missing(object string) {
	r.Weaknesses = append(r.Weaknesses, Weakness{
		Object: object, Setting: existence, Found: "missing", Wanted: "present",
		Remedy: "start any service of Plumbline, which makes it",
	})
}

// inspectServer reads what holds for the whole server.
func (c *Client) inspectServer(ctx context.Context, r *Report) error {
	check := checker{object: "server " + c.conn.ConnectedServerName(), report: r}
	check.atLeast("max_payload", c.conn.MaxPayload(), leastPayload, "set max_payload in the server's configuration")
	if c.cfg.MonitorURL == "" {
		r.Unknown = append(r.Unknown, "jetstream.sync_interval of the server: give its monitor_url to have it checked; "+
			"unless it is \"always\", a power failure loses acknowledged traces")
		return nil
	}
	settings, err := c.serverSettings(ctx)
	if err != nil {
		return err
	}
	if !settings.Config.SyncAlways {
		check.weak("jetstream.sync_interval", settings.Config.SyncInterval, "always",
			"set sync_interval: always in the server's jetstream block")
	}
	return nil
}

// serverSettings is the part of the monitoring page /jsz that matters here.
type serverSettings struct {
	Config struct {
		SyncAlways   bool            `json:"sync_always"`
		SyncInterval nanosecondCount `json:"sync_interval"`
	} `json:"config"`
}

func (c *Client) serverSettings(ctx context.Context) (s serverSettings, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cfg.MonitorURL+"/jsz?config=true", nil)
	if err != nil {
		return s, fmt.Errorf("broker.monitor_url: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address: its path may be a secret
	}
	if err != nil {
		return s, fmt.Errorf("read the broker's settings: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("read the broker's settings: broker.monitor_url answers %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("read the broker's settings: %w", err)
	}
	return s, nil
}
