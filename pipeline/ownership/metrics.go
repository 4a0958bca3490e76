package ownership

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/plumbline/plumbline/pipeline/subject"
)

type metrics struct {
	owned    *prometheus.GaugeVec // by partition
	expelled prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	register := promauto.With(registerer)
	return metrics{
		owned: register.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_partition_owned", Help: "1 if this process owns the partition, else 0."}, []string{"partition"}),
		expelled: register.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_owners_removed_total", Help: "Other processes whose partitions this one has taken away because they did not answer."}),
	}
}

// owns shows the partitions of a term, or none.
func (m *metrics) owns(term *Term) {
	for p := range subject.Partitions {
		value := 0.0
		if term != nil && term.owned[p] {
			value = 1
		}
		m.owned.WithLabelValues(strconv.Itoa(p)).Set(value)
	}
}
