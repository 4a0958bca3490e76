package drift

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/plumbline/plumbline/schema"
)

// metrics are the stage's counters. They count what is committed. A commit that is repeated after
// a crash counts again.
type metrics struct {
	baselines  *prometheus.CounterVec // by origin
	points     *prometheus.CounterVec // by status
	alerts     prometheus.Counter     // opened
	closed     prometheus.Counter
	loops      prometheus.Counter
	refused    prometheus.Counter
	duplicates prometheus.Counter
	recalled   prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	register := promauto.With(registerer)
	return &metrics{
		baselines: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_baselines_total", Help: "Baselines computed from traces, by mode: sessions, first, rolling."}, []string{"mode"}),
		points: register.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_points_total", Help: "Traces measured for drift, by status. Status late or conflict: stored but not counted."}, []string{"status"}),
		alerts: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_alerts_total", Help: "Drift alerts opened (AAP section 8.4)."}),
		closed: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_alerts_closed_total", Help: "Drift alerts closed: the agent behaves as in its baseline again."}),
		loops: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_loops_total", Help: "Alerts about loops of equal actions in running sessions."}),
		refused: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_refused_total", Help: "Messages that are not valid traces; the verifier stores them as dead letters."}),
		duplicates: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_duplicates_total", Help: "Duplicates of traces; drift counts each trace once."}),
		recalled: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_drift_series_read_total", Help: "States of series read from ClickHouse: after a start, and of series that had left memory."}),
	}
}

func (m *metrics) committed(b *batch) {
	for i := range b.baselines {
		m.baselines.WithLabelValues(b.baselines[i].Mode).Inc()
	}
	for i := range b.points {
		m.points.WithLabelValues(b.points[i].Status).Inc()
	}
	for i := range b.alerts {
		switch b.alerts[i].State {
		case schema.AlertOpened:
			m.alerts.Inc()
		case schema.AlertClosed:
			m.closed.Inc()
		}
	}
	m.loops.Add(float64(len(b.loops)))
	m.refused.Add(float64(b.refused))
	m.duplicates.Add(float64(b.duplicates))
}

// show shows the gauges of the present state. They are computed at each scrape, so they grow while a commit
// hangs.
func (s *stage) show(registerer prometheus.Registerer) {
	register := promauto.With(registerer)
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_drift_waiting_traces", Help: "Traces held back for older traces of their agent."},
		func() float64 {
			waiting, _ := s.behind()
			return float64(waiting)
		})
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_drift_series", Help: "Series (an agent under a card) in memory."},
		func() float64 {
			series, _ := s.resident()
			return float64(series)
		})
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_drift_series_bytes", Help: "Memory of the series in memory, without garbage."},
		func() float64 {
			_, bytes := s.resident()
			return float64(bytes)
		})
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_drift_lag_seconds", Help: "How far drift detection is behind, in seconds; normally a little over the lateness (2 s)."},
		func() float64 {
			_, lag := s.behind()
			return lag.Seconds()
		})
}

// resident returns how many series are in memory, and about how many bytes they take at rest.
func (s *stage) resident() (series, bytes int) {
	for _, p := range s.partitions {
		p.mu.Lock()
		series += len(p.fold.series)
		bytes += p.fold.bytes
		p.mu.Unlock()
	}
	return series, bytes
}

// behind returns how many traces wait for older ones, and the age of the oldest message that was read and is
// not done.
func (s *stage) behind() (waiting int, lag time.Duration) {
	now := s.now()
	oldest := now
	if at := s.committing.Load(); at != nil {
		oldest = *at
	}
	for _, p := range s.partitions {
		p.mu.Lock()
		waiting += p.fold.queue.waiting
		if at := p.fold.oldest(); !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
		p.mu.Unlock()
	}
	return waiting, now.Sub(oldest)
}
