package cards

import "github.com/prometheus/client_golang/prometheus"

// Expose registers the metrics of the registry.
func (r *Registry) Expose(metrics prometheus.Registerer) {
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plumbline_card_index_bytes", Help: "Memory that the index of all cards and revocations takes.",
		}, func() float64 { index, _ := r.Bytes(); return float64(index) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plumbline_card_cache_bytes", Help: "Memory that compiled cards take, within card_cache_bytes.",
		}, func() float64 { _, cached := r.Bytes(); return float64(cached) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "plumbline_card_fetches_total", Help: "Cards read from the broker because memory did not have them.",
		}, func() float64 { return float64(r.fetches.Load()) }),
	)
}
