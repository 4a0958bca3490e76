package verifier

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/plumbline/plumbline/schema"
)

// metrics are the stage's counters. A batch is counted when it is acked: received = traces + dead
// letters + not yet acked.
type metrics struct {
	traces      prometheus.Counter
	redelivered prometheus.Counter
	dead        *prometheus.CounterVec // by reason
	violations  *prometheus.CounterVec // by type
	unknown     prometheus.Counter
	batches     prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	register := promauto.With(registerer)
	return &metrics{
		traces: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_traces_total", Help: "Traces stored with their verdict and acknowledged."}),
		redelivered: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_redelivered_total", Help: "Messages that the broker delivered more than once."}),
		dead: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_dead_letters_total", Help: "Messages that can never be stored, by reason."}, []string{"reason"}),
		violations: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_verifier_violations_total", Help: "Violations found, by type (AAP section 7.5)."}, []string{"type"}),
		unknown: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_verifier_card_unknown_total", Help: "Traces stored without judgement because nobody has registered their card."}),
		batches: register.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_verifier_batch_rows", Help: "Traces of one insert.", Buckets: prometheus.ExponentialBuckets(1, 4, 9)}),
	}
}

func (m *metrics) judged(v *schema.Verdict) {
	if v.Status == schema.StatusCardUnknown {
		m.unknown.Inc()
	}
	for i := range v.Violations {
		m.violations.WithLabelValues(v.Violations[i].Type).Inc()
	}
}

func (m *metrics) committed(b *batch) {
	if len(b.messages) == 0 {
		return
	}
	m.traces.Add(float64(len(b.messages) - len(b.dead)))
	for i := range b.dead {
		m.dead.WithLabelValues(b.dead[i].Reason).Inc()
	}
	for i := range b.messages {
		if b.messages[i].Redelivered {
			m.redelivered.Inc()
		}
	}
	m.batches.Observe(float64(b.rows.Len()))
}
