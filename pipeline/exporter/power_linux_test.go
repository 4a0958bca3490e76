package exporter_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// A bundle has its name on the disk before it is recorded: a loss of power at that moment leaves the file.
func TestRecordedBundlesSurviveALossOfPower(t *testing.T) {
	disk := durabletest.New(t, filepath.Join(t.TempDir(), "bundles"), 32)
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	stage := s.export(t, func(cfg *exporter.Config) { cfg.BundleDir = disk.Dir })
	sessions := make([]string, 20)
	for i := range sessions {
		sessions[i] = fmt.Sprint("session ", i)
		s.Publish(t, trace(fmt.Sprint("tr-", i), sessions[i], i))
	}
	for _, session := range sessions {
		s.requestEnd(t, "a", session)
	}
	pipelinetest.Await(t, "the rows of the bundles", func() bool {
		for _, session := range sessions {
			if len(s.bundles(t, "a", session)) == 0 {
				return false
			}
		}
		return true
	})
	disk.CutPower()
	stage.Stop(t)
	disk.RestorePower()
	s.bundleDir = disk.Dir
	for _, session := range sessions {
		s.check(t, s.bundles(t, "a", session)[0])
	}
}
