package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/reload"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// The waits between attempts: they double from the first to the longest, each randomised by half.
const (
	firstWait   = 5 * time.Second
	longestWait = 15 * time.Minute
)

// fetchWait is how long one fetch waits for an alert.
const fetchWait = time.Second

// Serve sends alerts to the endpoints until ctx ends. Any number of processes may serve the same
// endpoints: the broker gives out the next alert of an endpoint when the last one is done.
func Serve(ctx context.Context, cfg *Config, env *service.Env) error {
	endpoints, err := ReadEndpoints(cfg.WebhooksFile)
	if err != nil {
		return fmt.Errorf("webhooks_file: %w", err)
	}
	return serve(ctx, cfg, env, endpoints, firstWait)
}

// serve is Serve with endpoints that were read, and with another first wait, for tests.
func serve(ctx context.Context, cfg *Config, env *service.Env, endpoints []Endpoint, first time.Duration) (err error) {
	broker, err := service.Broker(ctx, &cfg.Common, env)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	metrics := newMetrics(env.Metrics)
	work, stop := env.Drain(ctx)
	defer stop()
	actors := []func(context.Context) error{broker.Closed}
	var backlogs []service.Consumer
	for i := range endpoints {
		o, err := newOutlet(cfg, env, broker, metrics, &endpoints[i], first)
		if err != nil {
			return err
		}
		if err := env.Open(ctx, broker, func() error { return o.open(ctx) }); err != nil {
			return service.UnlessEnded(ctx, err)
		}
		durable := stream.WebhookConsumer(o.endpoint.Name)
		backlogs = append(backlogs, service.Consumer{Name: durable, Backlog: func(ctx context.Context) (uint64, error) {
			return broker.Backlog(ctx, stream.Alerts, durable)
		}})
		actors = append(actors, func(ctx context.Context) error {
			err := env.Retry.Keep(ctx, "read alerts for endpoint "+o.endpoint.Name, func() error { return o.run(ctx, work) })
			return service.UnlessEnded(ctx, err)
		})
	}
	actors = append(actors, func(ctx context.Context) error { return env.ShowBacklogs(ctx, backlogs...) })
	env.Started()
	return service.Group(ctx, actors...)
}

// outlet delivers the alerts of one endpoint.
type outlet struct {
	env      *service.Env
	tenant   string
	endpoint *Endpoint
	secrets  *reload.File[[]Secret]
	client   *http.Client
	metrics  *metrics
	broker   broker

	opened  bool // the consumer was there before
	waits   *backoff.ExponentialBackOff
	next    time.Time // no attempt before this time, whichever alert it is for
	failing bool      // the last attempt failed: it was logged
}

// broker is what an outlet needs of the broker (stream.Client).
type broker interface {
	EnsureWebhook(ctx context.Context, endpoint string) (created bool, err error)
	OpenConsumer(ctx context.Context, cfg stream.ConsumerConfig) (*stream.Consumer, error)
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

func newOutlet(cfg *Config, env *service.Env, broker broker, m *metrics, e *Endpoint, first time.Duration) (*outlet, error) {
	log := env.Log
	secrets, err := reload.Open(e.SecretFile, ReadSecrets, func(secrets []Secret, err error) {
		if err != nil {
			log.Error("secrets of an endpoint cannot be used; the last valid ones stay in effect", "endpoint", e.Name, "error", err)
			return
		}
		log.Info("secrets of an endpoint reloaded", "endpoint", e.Name, "secrets", len(secrets))
	})
	if err != nil {
		return nil, fmt.Errorf("secrets of endpoint %s: %w", e.Name, err)
	}
	m.show(e.Name)
	return &outlet{
		env: env, tenant: cfg.Tenant, endpoint: e, secrets: secrets, client: transport.Outbound(nil), metrics: m, broker: broker,
		waits: backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMultiplier(2),
			backoff.WithMaxInterval(longestWait), backoff.WithMaxElapsedTime(0)),
	}, nil
}

// open makes the endpoint's consumer if it is missing.
func (o *outlet) open(ctx context.Context) error {
	created, err := o.broker.EnsureWebhook(ctx, o.endpoint.Name)
	switch {
	case created && o.opened:
		o.env.Log.Error("the endpoint's consumer was deleted: it gets the alerts from now on, and not those in between", "endpoint", o.endpoint.Name)
	case created:
		o.env.Log.Info("the endpoint is new: it gets the alerts from now on", "endpoint", o.endpoint.Name)
	}
	o.opened = o.opened || err == nil
	return err
}

// run reads the endpoint's alerts and sends each, until ctx ends, the broker fails, or the endpoint
// wants no more. work is the context in which what has begun is finished.
func (o *outlet) run(ctx, work context.Context) error {
	defer o.client.CloseIdleConnections()
	if err := o.open(ctx); err != nil {
		return err
	}
	consumer, err := o.broker.OpenConsumer(ctx, stream.ConsumerConfig{
		Stream: stream.Alerts, Durable: stream.WebhookConsumer(o.endpoint.Name), PrefetchMessages: 1,
	})
	if err != nil {
		return err
	}
	defer consumer.Close()
	var inbox []stream.Message
	for ctx.Err() == nil {
		inbox, err = consumer.Fetch(ctx, inbox[:0], 1, 0, fetchWait)
		if len(inbox) == 0 {
			if err != nil {
				return err
			}
			continue
		}
		result, err := o.handle(ctx, work, inbox, consumer.StreamCreated())
		switch {
		case err != nil:
			return err
		case result == stopped || result == disabled:
			// Another process, or the next start, gets the alert.
			if err := inbox[0].NakAfter(0); err != nil {
				o.env.Log.Warn("the alert on its way is sent again only after its ack wait", "endpoint", o.endpoint.Name, "error", err)
			}
			if result == disabled {
				consumer.Close()
				<-ctx.Done()
			}
			return nil
		}
		if err := o.env.Retry.Do(work, "acknowledge alerts", func() error { return stream.Acknowledge(work, inbox) }); err != nil {
			return err
		}
		o.metrics.alerts.WithLabelValues(o.endpoint.Name, string(result)).Inc()
	}
	return nil
}

// result is what became of an alert for an endpoint. The first three are labels of the metric.
type result string

const (
	done     result = "delivered"
	filtered result = "filtered"
	givenUp  result = "given_up"

	stopped  result = "stopped"  // ctx ended first
	disabled result = "disabled" // the endpoint answered 410
)

// handle sends the one alert of the inbox, again and again, until it is delivered or given up. An
// alert that is given up is in the operator's ledger when handle returns.
func (o *outlet) handle(ctx, work context.Context, inbox []stream.Message, created time.Time) (result, error) {
	m := &inbox[0]
	a, err := readAlert(m, created, o.tenant)
	if err != nil {
		return givenUp, o.giveUp(work, m, created, 0, "unreadable", err.Error())
	}
	if !o.endpoint.wants(a) {
		return filtered, nil
	}
	release := stream.Hold(work, inbox, func(err error) {
		o.env.Log.Warn("the ack wait of an alert was not extended; the alert may be sent twice", "endpoint", o.endpoint.Name, "error", err)
	})
	defer release()
	for refusals, attempts := 0, 1; ; attempts++ {
		if !o.pause(ctx) {
			return stopped, nil
		}
		got := send(work, o.client, o.endpoint, o.secrets.Current(time.Now()), "plumbline/"+o.env.Version, a)
		if work.Err() != nil && got.outcome != delivered {
			return stopped, nil // the attempt was cut off
		}
		if got.outcome == delivered {
			o.recovered()
			return done, nil
		}
		o.failed(got)
		if got.outcome == gone { // nothing is repeated
			o.metrics.disabled.WithLabelValues(o.endpoint.Name).Set(1)
			o.env.Log.Error("the endpoint answered 410 Gone: it gets no more alerts until this process starts again; its alerts stay in the stream", "endpoint", o.endpoint.Name)
			return disabled, nil
		}
		if got.outcome == refused {
			refusals++
		}
		wait := max(o.waits.NextBackOff(), got.wait)
		o.next = time.Now().Add(wait)
		switch {
		case refusals >= o.endpoint.Attempts:
			o.waits.Reset() // the endpoint answers: the next alert is another matter
			o.next = time.Time{}
			return givenUp, o.giveUp(work, m, created, attempts, string(got.outcome), got.reason)
		case o.next.Sub(m.Received) > o.endpoint.GiveUpAfter:
			return givenUp, o.giveUp(work, m, created, attempts, string(got.outcome), got.reason)
		}
	}
}

// pause waits until the next attempt may be made; false if ctx ended first.
func (o *outlet) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(o.next)):
		return ctx.Err() == nil
	}
}

// failed notes an attempt that failed. The first one in a row that is repeated is logged.
func (o *outlet) failed(got answer) {
	o.metrics.failures.WithLabelValues(o.endpoint.Name, string(got.outcome)).Inc()
	if !o.failing && got.outcome != gone {
		o.env.Log.Warn("an endpoint did not take an alert; retrying", "endpoint", o.endpoint.Name, "outcome", string(got.outcome), "reason", got.reason)
	}
	o.failing = true
}

func (o *outlet) recovered() {
	if o.failing {
		o.env.Log.Info("the endpoint takes alerts again", "endpoint", o.endpoint.Name)
	}
	o.failing, o.next = false, time.Time{}
	o.waits.Reset()
}

// giveUp records in the operator's ledger, and then in the log, that an endpoint does not get an alert.
func (o *outlet) giveUp(work context.Context, m *stream.Message, created time.Time, attempts int, why, reason string) error {
	id := webhookID(m.ID(), created, m.Sequence)
	event, err := events.WebhookGivenUp{
		Endpoint: o.endpoint.Name, WebhookID: id, Stream: created, Sequence: m.Sequence, SHA256: schema.DigestOf(m.Data), Attempts: attempts, Reason: why,
	}.Event()
	if err != nil {
		return err
	}
	if err := o.env.Retry.Do(work, "append an alert that was given up to the ledger", func() error { return o.broker.AppendLedger(work, event) }); err != nil {
		return err
	}
	o.env.Log.Error("an alert was given up for an endpoint; the stream still has it", "endpoint", o.endpoint.Name, "webhook_id", id, "sequence", m.Sequence, "attempts", attempts, "reason", reason)
	return nil
}

// metrics are labelled with the name of the endpoint, of which there are at most mostEndpoints.
type metrics struct {
	alerts   *prometheus.CounterVec // endpoint, outcome
	failures *prometheus.CounterVec // endpoint, reason
	disabled *prometheus.GaugeVec   // endpoint
}

func newMetrics(register prometheus.Registerer) *metrics {
	m := &metrics{
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_webhook_alerts_total", Help: "Alerts that are done for an endpoint: delivered, filtered or given_up."}, []string{"endpoint", "outcome"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_webhook_failures_total", Help: "Attempts to send an alert that failed, by reason."}, []string{"endpoint", "reason"}),
		disabled: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_webhook_disabled", Help: "1 if the endpoint answered 410 Gone and gets no more alerts until the next start."}, []string{"endpoint"}),
	}
	register.MustRegister(m.alerts, m.failures, m.disabled)
	return m
}

// show makes the metrics of an endpoint visible before its first alert.
func (m *metrics) show(endpoint string) {
	for _, r := range []result{done, filtered, givenUp} {
		m.alerts.WithLabelValues(endpoint, string(r))
	}
	for _, o := range []outcome{refused, unavailable, gone} {
		m.failures.WithLabelValues(endpoint, string(o))
	}
	m.disabled.WithLabelValues(endpoint).Set(0)
}
