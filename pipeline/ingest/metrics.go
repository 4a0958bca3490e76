package ingest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the stage's counters.
type metrics struct {
	lines       [statuses]prometheus.Counter // by outcome; none for pending
	requests    *prometheus.HistogramVec     // seconds, by route and code
	commitRows  prometheus.Histogram
	commitTime  prometheus.Histogram
	deadLetters *prometheus.CounterVec // by reason
	dropped     prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_ingest_lines_total", Help: "Lines received, by outcome."}, []string{"outcome"})
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_ingest_request_seconds", Help: "Duration of requests, by route and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}, []string{"route", "code"}),
		commitRows: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_ingest_commit_rows", Help: "Traces that one request committed together.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 6)}),
		commitTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_ingest_commit_seconds", Help: "Time until the broker held the traces that one request committed together.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_ingest_dead_letters_total", Help: "Refused lines kept as dead letters, by reason."}, []string{"reason"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_ingest_dead_letters_dropped_total", Help: "Refused lines not kept as dead letters, because too many came at once."}),
	}
	for s := accepted; s < statuses; s++ {
		m.lines[s] = lines.WithLabelValues(s.String())
	}
	registerer.MustRegister(lines, m.requests, m.commitRows, m.commitTime, m.deadLetters, m.dropped)
	return m
}

func (m *metrics) committed(rows int, took time.Duration) {
	m.commitRows.Observe(float64(rows))
	m.commitTime.Observe(took.Seconds())
}
