package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/schema"
)

type metrics struct {
	receipts prometheus.Counter
	sealed   *prometheus.CounterVec // by reason
	traces   prometheus.Counter
	held     prometheus.Counter
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
	m := &metrics{
		receipts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_receipts_total", Help: "Receipts folded into the index of open sessions."}),
		sealed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_bundles_total", Help: "Bundles sealed, by reason."}, []string{"reason"}),
		traces: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_traces_total", Help: "Traces in sealed bundles."}),
		held: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_held_total", Help: "Times that a session was held because rows and receipts differ."}),
		found: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_session_findings_total", Help: "Findings of verdicts on sealed sessions, by type."}, []string{"type"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_open_sessions", Help: "Sessions with traces that are not in a bundle yet."}),
		folded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_receipts_sequence", Help: "Sequence of stream RECEIPTS up to which all receipts are folded and all due sessions are sealed."}),
		delivered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_delivered_total", Help: "Files known to be at a destination, in addition to the bundle directory."}, []string{"destination"}),
		undelivered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_exporter_delivery_failures_total", Help: "Failed attempts to copy a file to a destination."}, []string{"destination"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_exporter_copies_waiting", Help: "Files not yet at the destination."}, []string{"destination"}),
		stamped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_timestamps_total", Help: "Time stamps stored with bundles."}),
		unstamped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_exporter_timestamp_failures_total", Help: "Requests to the time stamping authority that returned no stamp."}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_exporter_timestamps_waiting", Help: "Bundles that do not have their time stamp yet."}),
	}
	registerer.MustRegister(m.receipts, m.sealed, m.traces, m.held, m.found, m.open, m.folded,
		m.delivered, m.undelivered, m.pending, m.stamped, m.unstamped, m.waiting)
	return m
}

// findings counts the findings of a verdict on a session.
func (m *metrics) findings(v *schema.SessionVerdict) {
	if v == nil {
		return
	}
	for kind, n := range v.FindingCounts {
		m.found.WithLabelValues(kind).Add(float64(n))
	}
}
