package integration_test

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// TestPublisherLeavesUnavailableNodes disables nodes under a publisher in every way, without services and
// database. Each time the publisher must publish again while the node is still unavailable.
func TestPublisherLeavesUnavailableNodes(t *testing.T) {
	if !*chaos {
		t.Skip("it takes a minute: run it with -chaos")
	}
	if why := needsNamespaces(); why != "" {
		t.Skip(why)
	}
	c := newWiredCluster(t)
	c.awaitCurrent()
	cfg := c.config(3)
	cfg.Name = "ingest"
	client, err := stream.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pipelinetest.EnsureTopology(t, client)
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	entry, leader := func() *node { return c.entry("ingest") }, func() *node { return c.leader(role{stream.Traces, ""}) }
	acknowledged := uint64(0)
	for _, fault := range []struct {
		what   string
		victim func() *node
		strike func(*node) (undo func() error, err error)
	}{
		{"its node is cut off from its peers", entry, func(n *node) (func() error, error) { return n.cut("peer") }},
		{"the leader is cut off from its peers", leader, func(n *node) (func() error, error) { return n.cut("peer") }},
		{"its node is cut off from its clients", entry, func(n *node) (func() error, error) { return n.cut("client") }},
		{"its node is stopped", entry, (*node).stop},
		{"the leader is killed", leader, func(n *node) (func() error, error) { return n.start, n.kill() }},
	} {
		began := time.Now()
		undo, err := fault.strike(fault.victim())
		if err != nil {
			t.Fatal(err)
		}
		pipelinetest.Await(t, "an acknowledgement while "+fault.what, func() bool {
			record := pipelinetest.Trace(fault.what, "a", "ac", "s", "2026-02-01T00:00:00Z", "search")
			outcomes, err := committer.Publish(t.Context(), []stream.Record{record})
			return err == nil && outcomes[0].Err == nil
		})
		acknowledged++
		t.Logf("acknowledged %.1f s after %s", time.Since(began).Seconds(), fault.what)
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		c.awaitCurrent()
	}
	if state, err := client.StreamState(t.Context(), stream.Traces); err != nil || state.Messages != acknowledged {
		t.Errorf("%d are acknowledged, the stream has %d, error %v", acknowledged, state.Messages, err)
	}
}
