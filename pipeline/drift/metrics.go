package drift

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	register := promauto.With(registerer)
	return &metrics{
		baselines: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_baselines_total", Help: "Baselines computed from traces, by mode: first, rolling."}, []string{"mode"}),
		points: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_points_total", Help: "Traces measured for drift, by status. Status late or conflict: stored but not counted."}, []string{"status"}),
		alerts: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_alerts_total", Help: "Drift alerts raised (AAP section 8.4)."}),
		refused: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_refused_total", Help: "Messages that are not valid traces; the verifier stores them as dead letters."}),
		duplicates: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_duplicates_total", Help: "Duplicates of traces; drift counts each trace once."}),
		waiting: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_drift_waiting_traces", Help: "Traces held back for older traces of their agent."}),
		lag: register.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_drift_lag_seconds", Help: "How far drift detection is behind, in seconds; normally a little over the lateness (2 s)."}),
	}
}

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
		p.mu.Lock()
		traces += p.fold.queue.waiting
		if at := p.fold.oldest(); !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
		p.mu.Unlock()
	}
	s.metrics.waiting.Set(float64(traces))
	s.metrics.lag.Set(s.now().Sub(oldest).Seconds())
}
