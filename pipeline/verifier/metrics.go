package verifier

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/plumbline/plumbline/schema"
)

// metrics are the stage's counters. Traces, dead letters and redeliveries are counted when it is recorded
// that they are done. Verdicts are counted when they are given: a trace that is read again counts again.
type metrics struct {
	traces      prometheus.Counter
	redelivered prometheus.Counter
	dead        *prometheus.CounterVec // by reason
	verdicts    *prometheus.CounterVec // by recommended action
	violations  *prometheus.CounterVec // by type and severity
	findings    *prometheus.CounterVec // by type and severity
	unknown     prometheus.Counter
	batches     prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	register := promauto.With(registerer)
	m := &metrics{
		traces: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_traces_total", Help: "Traces stored with their verdict, with their position recorded."}),
		redelivered: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_redelivered_total", Help: "Messages that the broker delivered more than once."}),
		dead: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_dead_letters_total", Help: "Messages that can never be stored, by reason."}, []string{"reason"}),
		verdicts: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_verdicts_total", Help: "Verdicts on traces that arrived, by recommended action."}, []string{"recommended_action"}),
		violations: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_violations_total", Help: "Violations found, by type and severity (AAP section 7.5)."}, []string{"type", "severity"}),
		findings: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_findings_total", Help: "Findings of verdicts, by type and severity."}, []string{"type", "severity"}),
		unknown: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_card_unknown_total", Help: "Traces stored without a verdict because their card is not registered."}),
		batches: register.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_verifier_batch_rows", Help: "Traces per insert.", Buckets: prometheus.ExponentialBuckets(1, 4, 9)}),
	}
	for _, action := range []schema.Recommendation{schema.Proceed, schema.Review, schema.Deny} {
		m.verdicts.WithLabelValues(string(action)) // begins at 0: a rate shows the first one, too
	}
	return m
}

func (m *metrics) judged(v *schema.Verdict) {
	if v.Status == schema.StatusCardUnknown {
		m.unknown.Inc()
	}
	m.verdicts.WithLabelValues(string(v.RecommendedAction)).Inc()
	for i := range v.Violations {
		m.violations.WithLabelValues(v.Violations[i].Type, string(v.Violations[i].Severity)).Inc()
	}
	for i := range v.Findings {
		m.findings.WithLabelValues(v.Findings[i].Type, string(v.Findings[i].Severity)).Inc()
	}
}

func (m *metrics) committed(b *batch) {
	m.traces.Add(float64(b.inserted))
	for i := range b.dead {
		m.dead.WithLabelValues(b.dead[i].Reason).Inc()
	}
	for i := range b.messages {
		if b.messages[i].Redelivered {
			m.redelivered.Inc()
		}
	}
	m.batches.Observe(float64(b.rows.Stored()))
}
