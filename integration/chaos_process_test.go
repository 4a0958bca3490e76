package integration_test

import (
	"math/rand/v2"
	"time"
)

// processes are the processes of a site.
var processes = []string{"ingest", "verifier", "drift", "exporter", "broker", "engine"}

// processScenarios are faults of processes: one process is killed repeatedly, or random ones are.
func processScenarios() []scenario {
	lines := 3000 + 300**kills // a kill takes up to three seconds
	all := []scenario{{name: "kill-any", traces: lines * 2, strike: (*site).killAny}}
	for _, victim := range processes {
		all = append(all, scenario{name: "kill-" + victim, traces: lines, strike: func(s *site, r *rand.Rand) { s.killAgain(victim, r) }})
	}
	return append(all, scenario{name: "kill-owner", traces: lines * 2, strike: (*site).killOwners})
}

// killAgain kills a process as often as flag -kills states, each time at a random moment
// after everything was up.
func (s *site) killAgain(victim string, random *rand.Rand) {
	s.t.Helper()
	for range *kills {
		pause(random, 2*time.Second)
		s.check(s.killer(victim)())
		s.awaitUp()
	}
}

// killAny kills random processes, each as often as flag -kills states. The
// next one may be killed while the previous one is still starting.
func (s *site) killAny(random *rand.Rand) {
	s.t.Helper()
	var victims []string
	for range *kills {
		victims = append(victims, processes...)
	}
	random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, victim := range victims {
		pause(random, time.Second)
		s.check(s.killer(victim)())
	}
	s.awaitUp()
}

// killer returns a function that kills a process and restarts it if nothing else does.
func (s *site) killer(name string) func() error {
	if server := s.server(name); server != nil {
		return func() error {
			if pid := server(); pid != 0 { // 0: it is being restarted
				return kill(pid)
			}
			return nil
		}
	}
	return s.named(name).restart
}

// server returns a function for the process id of the broker or the engine; nil for a service.
func (s *site) server(name string) func() int {
	switch name {
	case "broker":
		return s.broker.Pid
	case "engine":
		return s.engine.Pid
	}
	return nil
}

// named returns the service with a name.
func (s *site) named(name string) *service {
	s.t.Helper()
	for _, service := range s.services() {
		if service.name == name {
			return service
		}
	}
	s.t.Fatalf("there is no process %q", name)
	return nil
}
