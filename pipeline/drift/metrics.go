package drift

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the stage's counters. They count what is committed. A commit that is repeated after
// a crash counts again.
type metrics struct {
	baselines  *prometheus.CounterVec // by origin
	points     *prometheus.CounterVec // by status
	alerts     prometheus.Counter
	refused    prometheus.Counter
	duplicates prometheus.Counter
	waiting    prometheus.Gauge
	lag        prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		baselines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_baselines_total", Help: "Baselines formed from traces, by mode: first, rolling."}, []string{"mode"}),
		points: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_points_total", Help: "Traces measured for drift, by status. Status late or conflict: stored but not counted."}, []string{"status"}),
		alerts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_alerts_total", Help: "Drift alerts raised (AAP section 8.4)."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_refused_total", Help: "Messages that are not a valid trace; the verifier stores them as dead letters."}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_duplicates_total", Help: "Copies of traces, counted once."}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_drift_waiting_traces", Help: "Traces that wait for older ones of their agent."}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_drift_lag_seconds", Help: "How far drift detection is behind, in seconds; normally a little over the lateness (2 s)."}),
	}
	registerer.MustRegister(m.baselines, m.points, m.alerts, m.refused, m.duplicates, m.waiting, m.lag)
	return m
}

// committed counts a batch that is durable.
func (m *metrics) committed(b *batch) {
	for i := range b.baselines {
		m.baselines.WithLabelValues(b.baselines[i].Mode).Inc()
	}
	for i := range b.points {
		m.points.WithLabelValues(b.points[i].Status).Inc()
	}
	m.alerts.Add(float64(len(b.alerts)))
	m.refused.Add(float64(b.refused))
	m.duplicates.Add(float64(b.duplicates))
}

// observe sets the gauges to the current state.
func (s *stage) observe() {
	traces, oldest := 0, s.now()
	for _, p := range s.partitions {
		n, at := p.waiting()
		traces += n
		if !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	s.metrics.waiting.Set(float64(traces))
	s.metrics.lag.Set(s.now().Sub(oldest).Seconds())
}

// waiting returns how many traces wait, and the receive time of the oldest message that waits or
// is finished and not taken by the committer yet.
func (p *partition) waiting() (traces int, oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fold.queue.waiting, p.fold.oldest()
}
