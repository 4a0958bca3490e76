package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/plumbline/plumbline/pipeline/config"
)

// The metrics arrive with the names, labels and values that Prometheus reads.
func TestMetricsArrive(t *testing.T) {
	r := newReceiver(t, config.OTLPOverHTTP, nil, nil)
	e, registry, _ := open(t, r.OTLP)
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "counts"}, []string{"kind"})
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2}})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Objectives: map[float64]float64{0.5: 0.1}})
	registry.MustRegister(counter, gauge, histogram, summary)
	counter.WithLabelValues("a").Add(3)
	gauge.Set(-1.5)
	for _, v := range []float64{0.5, 1.5, 1.6} {
		histogram.Observe(v)
	}
	histogram.(prometheus.ExemplarObserver).ObserveWithExemplar(9, prometheus.Labels{"a": "b"}) // gives it a bucket without a bound
	summary.Observe(4)
	e.Start()()
	found := map[string]pmetric.Metric{}
	for _, m := range (<-r.requests).metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		found[m.Name()] = m
	}
	if c := found["c_total"].Sum(); !c.IsMonotonic() || c.AggregationTemporality() != pmetric.AggregationTemporalityCumulative || found["c_total"].Description() != "counts" {
		t.Errorf("the counter is monotonic: %v, %s", c.IsMonotonic(), c.AggregationTemporality())
	}
	if p := found["c_total"].Sum().DataPoints().At(0); p.DoubleValue() != 3 || p.Attributes().AsRaw()["kind"] != "a" || p.StartTimestamp() == 0 || p.Timestamp() < p.StartTimestamp() {
		t.Errorf("the counter is %v %v from %s to %s", p.DoubleValue(), p.Attributes().AsRaw(), p.StartTimestamp(), p.Timestamp())
	}
	if v := found["g"].Gauge().DataPoints().At(0).DoubleValue(); v != -1.5 {
		t.Errorf("the gauge is %v", v)
	}
	h := found["h"].Histogram().DataPoints().At(0)
	bounds, counts := h.ExplicitBounds().AsRaw(), h.BucketCounts().AsRaw()
	if h.Count() != 4 || h.Sum() != 12.6 || len(bounds) != 2 || bounds[1] != 2 || len(counts) != 3 || counts[0] != 1 || counts[1] != 2 || counts[2] != 1 {
		t.Errorf("the histogram has %d values, sum %v, %v in %v", h.Count(), h.Sum(), counts, bounds)
	}
	if s := found["s"].Summary().DataPoints().At(0); s.Count() != 1 || s.Sum() != 4 || s.QuantileValues().At(0).Quantile() != 0.5 || s.QuantileValues().At(0).Value() != 4 {
		t.Errorf("the summary has %d values", s.Count())
	}
	if found["plumbline_telemetry_spans_total"].Sum().DataPoints().Len() != 3 {
		t.Error("the metrics of this package are missing")
	}
}
