package demo

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// gauge returns the value of a metric that one stage has, 0 before it was set.
func gauge(from prometheus.Gatherer, name string) (float64, error) {
	families, err := from.Gather()
	if err != nil {
		return 0, fmt.Errorf("read the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() == name && len(family.GetMetric()) == 1 {
			return family.GetMetric()[0].GetGauge().GetValue(), nil
		}
	}
	return 0, nil
}
