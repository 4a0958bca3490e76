package web

import (
	"maps"
	"slices"
)

// component is a part of the pipeline that does not work now, with the reason.
type component struct{ Name, Reason string }

// components returns what does not work, as far as this process knows: within plumbline up that is every
// service, otherwise the console alone.
func (s *server) components() (down []component) {
	reported := s.env.Health.Readiness().Down
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		down = append(down, component{name, reported[name]})
	}
	return down
}

// backlog is how many messages a consumer has before it.
type backlog struct {
	Consumer string
	Messages uint64
}

// backlogs returns the backlogs that the services of this process show in their metrics.
func (s *server) backlogs() (all []backlog) {
	families, err := s.env.Gatherer.Gather()
	if err != nil { // what was gathered is still right
		s.log.Debug("some metrics could not be gathered", "error", err)
	}
	for _, family := range families {
		if family.GetName() != "plumbline_backlog_messages" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "consumer" {
					all = append(all, backlog{label.GetValue(), uint64(max(0, metric.GetGauge().GetValue()))})
				}
			}
		}
	}
	return all
}
