package integration_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

// SIGTERM under load: each service finishes the work that it has begun and ends with exit
// code 0. What was stored and acknowledged is not redelivered: no trace gets a second
// receipt, and no row is written twice.
func testServicesDrain(t *testing.T, s *input) {
	const agents, sessions, traces, perRequest = 4, 5, 1000, 40
	for a := range agents {
		s.publisher.register(pipelinetest.Card(fmt.Sprintf("ac-drain-%d", a), fmt.Sprintf("drain-%d", a)))
	}
	lines := make([][]byte, traces)
	for i := range lines {
		a := i % agents
		lines[i] = pipelinetest.Trace(fmt.Sprintf("tr-%d", i), fmt.Sprintf("drain-%d", a), fmt.Sprintf("ac-drain-%d", a),
			fmt.Sprintf("s-%d", i*sessions/traces), fmt.Sprintf("2026-02-01T00:%02d:%02dZ", i/60, i%60), "search").Data
	}
	stopping := s.services()
	for n, part := range slices.Collect(slices.Chunk(lines, traces/sessions)) {
		for i, request := range slices.Collect(slices.Chunk(part, perRequest)) {
			if i != 3 || len(stopping) == 0 {
				s.publisher.publish(request, nil)
				continue
			}
			back := make(chan struct{})
			s.publisher.publish(request, func() { go s.replace(stopping[0], back) })
			<-back
			stopping = stopping[1:]
		}
		for a := range agents {
			s.publisher.end(fmt.Sprintf("drain-%d", a), fmt.Sprintf("s-%d", n))
		}
	}
	s.await("all traces and bundles", func(c store.Counts) bool { return c.Traces >= traces && c.Bundles >= agents*sessions })
	seen := s.checkAtRest()
	if seen.Traces != traces || seen.Points != traces || seen.Sealed != traces || seen.Bundles != agents*sessions ||
		seen.Copies != 0 || seen.Repeated != 0 || seen.DeadLetters != 0 {
		t.Errorf("seen %+v", seen)
	}
}

// replace drains a service and restarts it.
func (s *site) replace(service *service, back chan<- struct{}) {
	defer close(back)
	service.terminate()
	s.check(service.start())
}
