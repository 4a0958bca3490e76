package exporter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/plumbline/plumbline/schema"
)

type metrics struct {
	receipts prometheus.Counter
	sealed   *prometheus.CounterVec // by reason
	traces   prometheus.Counter
	held     prometheus.Counter
	holding  prometheus.Gauge
	verdicts *prometheus.CounterVec // on sessions, by recommended action
	found    *prometheus.CounterVec // findings of session verdicts, by type
	open     prometheus.Gauge
	folded   prometheus.Gauge

	delivered   *prometheus.CounterVec // by destination
	undelivered *prometheus.CounterVec // by destination
	pending     *prometheus.GaugeVec   // by destination

	stamped, unstamped prometheus.Counter
	waiting            prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	register := promauto.With(registerer)
	m := &metrics{
		receipts: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_receipts_total", Help: "Receipts folded into the index of open sessions."}),
		sealed: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_bundles_total", Help: "Bundles sealed, by reason: ended, requested, idle, schedule or rotation."}, []string{"reason"}),
		traces: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_traces_total", Help: "Traces in sealed bundles."}),
		held: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_held_total", Help: "Number of times that a session was held because rows and receipts differ; table seal_runs has the reasons."}),
		holding: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_held_sessions", Help: "Sessions that are held now because no bundle can be made of them."}),
		verdicts: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_session_verdicts_total", Help: "Verdicts on sealed parts of sessions, by recommended action."}, []string{"recommended_action"}),
		found: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_session_findings_total", Help: "Findings of verdicts on sealed sessions, by type."}, []string{"type"}),
		open: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_open_sessions", Help: "Sessions with traces that are not in a bundle yet."}),
		folded: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_receipts_sequence", Help: "Sequence of stream RECEIPTS up to which all receipts are folded and all due sessions are sealed."}),
		delivered: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_delivered_total", Help: "Bundles and their accompanying files that are known to be at a destination, in addition to the bundle directory."}, []string{"destination"}),
		undelivered: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_delivery_failures_total", Help: "Failed attempts to copy files to a destination; they are retried."}, []string{"destination"}),
		pending: register.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_exporter_copies_waiting", Help: "Files not yet at the destination."}, []string{"destination"}),
		stamped: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_timestamps_total", Help: "Time stamps stored with bundles."}),
		unstamped: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_timestamp_failures_total", Help: "Requests to the time stamping authority that returned no stamp; they are retried."}),
		waiting: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_timestamps_waiting", Help: "Bundles that do not have their time stamp yet."}),
	}
	for _, action := range []schema.Recommendation{schema.Proceed, schema.Review, schema.Deny} {
		m.verdicts.WithLabelValues(string(action)) // begins at 0: a rate shows the first one, too
	}
	return m
}
