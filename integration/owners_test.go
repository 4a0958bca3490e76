package integration_test

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// takenOver is how soon the partitions of a killed owner must have another one.
const takenOver = 15 * time.Second

// secondVerifier starts another verifier, and returns it when each of the two owns half of the
// partitions.
func (s *site) secondVerifier() *service {
	s.t.Helper()
	second := s.service("verifier", "PLUMBLINE_BATCH_AGE=50ms")
	second.awaitReady()
	s.awaitOwned(second, subject.Partitions/2)
	return second
}

// killOwner kills a verifier, requires that another one has all partitions soon, and starts the
// killed one again.
func (s *site) killOwner(victim, other *service) error {
	s.t.Helper()
	began := time.Now()
	if err := victim.kill(); err != nil {
		return err
	}
	s.awaitOwned(other, subject.Partitions)
	took := time.Since(began)
	s.t.Logf("the partitions of a killed verifier were taken over after %s", took)
	if took > takenOver {
		s.t.Errorf("the partitions of a killed verifier were taken over after %s, want at most %s", took, takenOver)
	}
	return victim.start()
}

// awaitOwned waits until a verifier owns n partitions.
func (s *site) awaitOwned(owner *service, n int) {
	s.t.Helper()
	pipelinetest.Await(s.t, "partitions of a verifier", func() bool {
		shares, err := s.client.Shares(s.t.Context(), stream.VerifierConsumer)
		if err != nil {
			s.t.Fatal(err)
		}
		pids, owned := map[string]int{}, 0
		for i := range shares.Members {
			pids[shares.Members[i].ID] = shares.Members[i].PID
		}
		for p := range shares.Partitions {
			if pids[shares.Partitions[p].Owner] == owner.cmd.Process.Pid {
				owned++
			}
		}
		return owned == n
	})
}

// killOwners kills each of two verifiers in turn, as often as flag -kills states, while the other one
// works.
func (s *site) killOwners(random *rand.Rand) {
	s.t.Helper()
	second := s.secondVerifier()
	for range *kills {
		for _, pair := range [][2]*service{{s.verifier, second}, {second, s.verifier}} {
			pause(random, 2*time.Second)
			s.check(s.killOwner(pair[0], pair[1]))
			pair[0].awaitReady()
			s.awaitOwned(pair[0], subject.Partitions/2)
		}
	}
}
