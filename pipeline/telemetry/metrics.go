package telemetry

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// window is the time over which cumulative values count.
type window struct{ from, to pcommon.Timestamp }

// convert adds the metrics of a registry, under the names of Prometheus. All are cumulative since from.
func convert(families []*dto.MetricFamily, from, to time.Time, into pmetric.MetricSlice) {
	w := window{pcommon.NewTimestampFromTime(from), pcommon.NewTimestampFromTime(to)}
	for _, family := range families {
		metric := into.AppendEmpty()
		metric.SetName(family.GetName())
		metric.SetDescription(family.GetHelp())
		switch family.GetType() {
		case dto.MetricType_COUNTER:
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, m := range family.GetMetric() {
				w.number(m, m.GetCounter().GetValue(), sum.DataPoints().AppendEmpty())
			}
		case dto.MetricType_HISTOGRAM:
			histogram := metric.SetEmptyHistogram()
			histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, m := range family.GetMetric() {
				w.histogram(m, histogram.DataPoints().AppendEmpty())
			}
		case dto.MetricType_SUMMARY:
			points := metric.SetEmptySummary().DataPoints()
			for _, m := range family.GetMetric() {
				w.summary(m, points.AppendEmpty())
			}
		default: // gauges, and metrics without a type
			points := metric.SetEmptyGauge().DataPoints()
			for _, m := range family.GetMetric() {
				w.number(m, m.GetGauge().GetValue()+m.GetUntyped().GetValue(), points.AppendEmpty())
			}
		}
	}
}

func (w window) number(m *dto.Metric, value float64, point pmetric.NumberDataPoint) {
	label(m, point.Attributes())
	point.SetStartTimestamp(w.from)
	point.SetTimestamp(w.to)
	point.SetDoubleValue(value)
}

// histogram converts buckets, which in Prometheus count all smaller values, too.
func (w window) histogram(m *dto.Metric, point pmetric.HistogramDataPoint) {
	label(m, point.Attributes())
	point.SetStartTimestamp(w.from)
	point.SetTimestamp(w.to)
	h := m.GetHistogram()
	point.SetCount(h.GetSampleCount())
	point.SetSum(h.GetSampleSum())
	below := uint64(0)
	for _, bucket := range h.GetBucket() {
		if math.IsInf(bucket.GetUpperBound(), 1) { // in OpenTelemetry the last bucket has no bound
			break
		}
		point.ExplicitBounds().Append(bucket.GetUpperBound())
		point.BucketCounts().Append(bucket.GetCumulativeCount() - below)
		below = bucket.GetCumulativeCount()
	}
	point.BucketCounts().Append(h.GetSampleCount() - below)
}

func (w window) summary(m *dto.Metric, point pmetric.SummaryDataPoint) {
	label(m, point.Attributes())
	point.SetStartTimestamp(w.from)
	point.SetTimestamp(w.to)
	s := m.GetSummary()
	point.SetCount(s.GetSampleCount())
	point.SetSum(s.GetSampleSum())
	for _, q := range s.GetQuantile() {
		value := point.QuantileValues().AppendEmpty()
		value.SetQuantile(q.GetQuantile())
		value.SetValue(q.GetValue())
	}
}

func label(m *dto.Metric, attributes pcommon.Map) {
	for _, pair := range m.GetLabel() {
		attributes.PutStr(pair.GetName(), pair.GetValue())
	}
}
