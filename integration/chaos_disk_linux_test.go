package integration_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// diskScenarios are faults of disks: they are full, they grow, and they lose power.
func diskScenarios() []scenario {
	all := []scenario{
		powerLoss("power-loss-ingest", (*site).onlyInBroker),
		powerLoss("power-loss-sealing", (*site).whileSealing),
		powerLoss("power-loss-merge", (*site).afterMerge),
		brokerWithoutSync(),
		engineWithoutSync(),
		{name: "power-loss-first-seconds", needs: durabletest.Lacking, instead: lossesInFirstSeconds},
	}
	for _, d := range []diskOf{
		{"broker", 128, func(at *place) *string { return &at.brokerDir }, func(s *site) *service { return s.ingest }},
		{"engine", 512, func(at *place) *string { return &at.engineDir }, func(s *site) *service { return s.verifier }},
		{"bundle", 64, func(at *place) *string { return &at.dataDir }, func(s *site) *service { return s.exporter }},
	} {
		all = append(all,
			d.full("full", durabletest.New, moments, (*durabletest.Disk).Empty),
			d.full("grown", durabletest.NewGrowing, 0, func(disk *durabletest.Disk) { disk.Grow(2 * d.megabytes) }))
	}
	return all
}

// newDisk is a constructor of package durabletest.
type newDisk func(t testing.TB, dir string, megabytes int64) *durabletest.Disk

// onDisk returns a scenario on a site whose data is on a disk of its own.
func onDisk(name string, disk newDisk, megabytes int64, start func(testing.TB, *durabletest.Disk) *site, strike func(*site, *durabletest.Disk, *rand.Rand)) scenario {
	var made *durabletest.Disk
	return scenario{
		name: name, needs: durabletest.Lacking, traces: 6000,
		site: func(t testing.TB) *site {
			made = disk(t, filepath.Join(t.TempDir(), "disk"), megabytes)
			return start(t, made)
		},
		strike: func(s *site, r *rand.Rand) { strike(s, made, r) },
	}
}

// diskOf describes the disk of one of a site's directories.
type diskOf struct {
	name      string
	megabytes int64
	directory func(*place) *string
	victim    func(*site) *service // whose readiness shows that the disk is full
}

// moments is how often a disk is full for up to half a second before it stays full. The short
// times make it full at every step of a write.
const moments = 10

// full fills the disk while traces arrive, and then makes room.
func (d diskOf) full(outcome string, disk newDisk, moments int, makeRoom func(*durabletest.Disk)) scenario {
	start := func(t testing.TB, made *durabletest.Disk) *site {
		var at place
		*d.directory(&at) = made.Dir
		return newSiteAt(t, at)
	}
	return onDisk(d.name+"-disk-"+outcome, disk, d.megabytes, start, func(s *site, made *durabletest.Disk, random *rand.Rand) {
		for range moments {
			made.Fill()
			pause(random, time.Second/2)
			made.Empty()
			pause(random, time.Second/2)
		}
		made.Fill()
		pipelinetest.Await(s.t, "the full disk to show", func() bool { return !d.victim(s).ready() })
		makeRoom(made)
		s.awaitUp()
	})
}
