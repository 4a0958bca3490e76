package integration_test

import (
	"math/rand/v2"
	"time"
)

// processScenarios are what happens to processes.
func processScenarios() []scenario {
	var all []scenario
	for _, victim := range []string{"ingest", "verifier", "drift", "exporter", "broker", "engine"} {
		all = append(all, scenario{name: "kill-" + victim, strike: func(s *site, r *rand.Rand) { s.killAtRandom(victim, r) }})
	}
	return all
}

// killAtRandom kills a process as often as flag -kills says, each time at a random moment
// of its life.
func (s *site) killAtRandom(victim string, random *rand.Rand) {
	s.t.Helper()
	for range *kills {
		pause(random, 2*time.Second)
		s.check(s.killer(victim)())
		s.awaitUp()
	}
}

// killer returns what kills a process by its name, and starts it again where nobody else
// does.
func (s *site) killer(name string) func() error {
	switch name {
	case "broker":
		return func() error { return kill(s.broker.Pid()) }
	case "engine":
		return func() error { return kill(s.engine.Pid()) }
	}
	for _, service := range s.services() {
		if service.name == name {
			return service.restart
		}
	}
	s.t.Fatalf("there is no process %q", name)
	return nil
}
