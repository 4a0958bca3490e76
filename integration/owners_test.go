package integration_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// takenOver is how soon the partitions of a killed owner must have another one, and the lease of a
// killed keeper.
const takenOver = 15 * time.Second

// demandSoon requires that what a killed process had was taken over soon.
func (s *site) demandSoon(what string, began time.Time) {
	s.t.Helper()
	took := time.Since(began)
	s.t.Logf("%s taken over %s after the kill", what, took)
	if took > takenOver {
		s.t.Errorf("%s taken over %s after the kill, want at most %s", what, took, takenOver)
	}
}

// holder returns the process id in the record of a lease, or 0.
func (s *site) holder(stage string) int {
	s.t.Helper()
	bucket, err := s.client.Bucket(s.t.Context(), stream.Leases)
	if err != nil {
		s.t.Fatal(err)
	}
	var holder stream.Holder
	value, _, err := bucket.GetNewest(s.t.Context(), stage)
	if err == nil {
		err = json.Unmarshal(value, &holder)
	}
	if err != nil && !errors.Is(err, stream.ErrNotFound) {
		s.t.Fatal(err)
	}
	return holder.PID
}

// records are the keys of the records of the stages that share the partitions.
var records = map[string]string{"verifier": stream.VerifierConsumer, "drift": stream.DriftOwners, "exporter": stream.ExporterOwners}

// secondOwner starts another process of a stage, and returns it when each of the two owns half of the
// partitions.
func (s *site) secondOwner(stage string) *service {
	s.t.Helper()
	settings := []string{"PLUMBLINE_BATCH_AGE=50ms"}
	if stage == "exporter" {
		settings = []string{"PLUMBLINE_EVERY=50ms", "PLUMBLINE_DATA_DIR=" + s.place.dataDir}
	}
	second := s.service(stage, settings...)
	second.awaitReady()
	s.awaitOwned(second, subject.Partitions/2)
	return second
}

// killOwner kills a process, requires that another one of its stage has all partitions soon, and starts
// the killed one again.
func (s *site) killOwner(victim, other *service) error {
	s.t.Helper()
	began := time.Now()
	if err := victim.kill(); err != nil {
		return err
	}
	s.awaitOwned(other, subject.Partitions)
	s.demandSoon("the partitions of "+victim.name, began)
	if victim.name == "exporter" { // it may have been the keeper
		pipelinetest.Await(s.t, "a keeper", func() bool { return s.holder("exporter") == other.cmd.Process.Pid })
		s.demandSoon("the lease of the exporter", began)
	}
	return victim.start()
}

// shares returns the record of a stage.
func (s *site) shares(stage string) stream.Shares {
	s.t.Helper()
	shares, err := s.client.Shares(s.t.Context(), records[stage])
	if err != nil {
		s.t.Fatal(err)
	}
	return shares
}

// awaitOwned waits until a process owns n partitions.
func (s *site) awaitOwned(owner *service, n int) {
	s.t.Helper()
	pipelinetest.Await(s.t, "partitions of "+owner.name, func() bool {
		shares := s.shares(owner.name)
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

// epochs counts how often a partition of a stage has changed its owner.
func (s *site) epochs(stage string) (n uint64) {
	s.t.Helper()
	shares := s.shares(stage)
	for p := range shares.Partitions {
		n += shares.Partitions[p].Epoch
	}
	return n
}

// killOwners kills each of two verifiers, of two drifts and of two exporters in turn, as often as flag
// -kills states, while the other one works.
func (s *site) killOwners(random *rand.Rand) {
	s.t.Helper()
	verifier, drift, exporter := s.secondOwner("verifier"), s.secondOwner("drift"), s.secondOwner("exporter")
	for range *kills {
		for _, pair := range [][2]*service{
			{s.verifier, verifier}, {s.drift, drift}, {s.exporter, exporter}, {verifier, s.verifier}, {drift, s.drift}, {exporter, s.exporter},
		} {
			pause(random, 2*time.Second)
			s.check(s.killOwner(pair[0], pair[1]))
			pair[0].awaitReady()
			s.awaitOwned(pair[0], subject.Partitions/2)
		}
	}
}
