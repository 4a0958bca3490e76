package integration_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// nodeScenarios are faults of the nodes of a cluster.
func nodeScenarios() []scenario {
	loopback := func(replicas int) func(testing.TB) *site {
		return func(t testing.TB) *site { return newClusterSite(t, newCluster(t), replicas) }
	}
	wired := func(t testing.TB) *site { return newClusterSite(t, newWiredCluster(t), 3) }
	return []scenario{
		{name: "r3-kill-leaders", site: loopback(3), traces: 10_000, strike: (*site).killLeaders},
		{name: "r3-stop-node", site: loopback(3), traces: 12_000, strike: (*site).stopNodes},
		{name: "r3-cut-from-peers", needs: needsNamespaces, site: wired, traces: 10_000, strike: (*site).cutFromPeers},
		{name: "r3-cut-from-clients", needs: needsNamespaces, site: wired, traces: 8000, strike: (*site).cutFromClients},
		{name: "r3-two-away", site: loopback(3), traces: 6000, strike: (*site).takeTwoAway},
		{name: "r3-lose-disk", site: loopback(3), traces: 6000, strike: (*site).loseDisk},
		{name: "r1-lose-disk", site: loopback(1), traces: 6000, strike: (*site).loseDisk, control: true},
	}
}

// newClusterSite starts a site on a cluster that keeps each stream on so many nodes.
func newClusterSite(t testing.TB, c *cluster, replicas int) *site {
	t.Helper()
	c.awaitCurrent()
	s := newSiteAt(t, place{nats: c.config(replicas)})
	s.nodes = c
	return s
}

// These constants are how long nodes are unavailable.
const (
	stoppedFor = 30 * time.Second
	cutFor     = 20 * time.Second
)

// killLeaders kills one leader after the other, each while it leads, and restarts it.
func (s *site) killLeaders(random *rand.Rand) {
	s.t.Helper()
	for _, of := range roles() {
		pause(random, time.Second)
		leader := s.nodes.leader(of)
		s.t.Logf("killing %s, which leads %s", leader.name, of)
		s.check(leader.kill())
		pause(random, 3*time.Second)
		s.check(leader.start())
		s.nodes.awaitCurrent()
	}
}

// roles returns the roles whose leaders are killed: they cover what each stage reads, writes
// and relies on.
func roles() []role {
	return []role{
		{stream.Traces, ""}, {stream.Receipts, ""},
		{"KV_" + stream.Seals, ""}, {"KV_" + stream.Leases, ""}, {"KV_" + stream.Cards, ""}, {stream.Alerts, ""}, {stream.Ledger, ""},
	}
}

// stopNodes stops the leader of TRACES, and then the node that ingest is connected to. A stopped
// node does not close its connections. The work must continue meanwhile.
func (s *site) stopNodes(*rand.Rand) {
	s.t.Helper()
	for _, victim := range []func() *node{
		func() *node { return s.nodes.leader(role{stream.Traces, ""}) },
		func() *node { return s.nodes.entry("ingest") },
	} {
		n := victim()
		s.t.Logf("stopping %s", n.name)
		began := time.Now()
		resume, err := n.stop()
		s.check(err)
		s.awaitMore("a node is stopped")
		time.Sleep(stoppedFor - time.Since(began))
		s.check(resume())
		s.nodes.awaitCurrent()
	}
}

// awaitMore waits until more is acknowledged than was in flight when the fault began, and
// until as many rows are stored.
func (s *site) awaitMore(during string) {
	s.t.Helper()
	began, wanted := time.Now(), s.publisher.answered()+2*chunk
	s.await("further traces while "+during, func(c store.Counts) bool {
		return s.publisher.answered() >= wanted && c.Traces >= uint64(wanted)
	})
	s.t.Logf("%d further traces are acknowledged and rows %.1f s after %s", 2*chunk, time.Since(began).Seconds(), during)
}

// cutFromPeers disconnects the node that ingest is connected to from the other nodes, and then
// the leader of TRACES: clients reach a node without a majority, and leave it.
func (s *site) cutFromPeers(*rand.Rand) {
	s.t.Helper()
	for _, victim := range []func() *node{
		func() *node { return s.nodes.entry("ingest") },
		func() *node { return s.nodes.leader(role{stream.Traces, ""}) },
	} {
		n := victim()
		s.t.Logf("cutting %s off from its peers", n.name)
		began := time.Now()
		join, err := n.cut("peer")
		s.check(err)
		s.awaitMore("a node is cut off from its peers")
		time.Sleep(cutFor - time.Since(began))
		s.check(join())
		s.nodes.awaitCurrent()
	}
}

// cutFromClients disconnects the node that ingest is connected to from its clients. The node
// stays connected to its peers.
func (s *site) cutFromClients(*rand.Rand) {
	s.t.Helper()
	n := s.nodes.entry("ingest")
	s.t.Logf("cutting %s off from its clients", n.name)
	began := time.Now()
	join, err := n.cut("client")
	s.check(err)
	s.awaitMore("a node is cut off from its clients")
	time.Sleep(cutFor - time.Since(began))
	s.check(join())
	s.nodes.awaitCurrent()
}

// takeTwoAway kills two nodes of three. Ingest reports it, and continues when they are back.
func (s *site) takeTwoAway(*rand.Rand) {
	s.t.Helper()
	g := s.guest("away", 1)
	first := s.nodes.leader(role{stream.Traces, ""})
	away := s.nodes.twoWith(first)
	for _, n := range away {
		s.check(n.kill())
	}
	began := time.Now()
	pipelinetest.Await(s.t, "ingest to name the reason", func() bool {
		code, answer := g.request(http.MethodPost, "/v1/traces", "application/x-ndjson", bytes.NewReader(append(g.lines[0], '\n')))
		named := code == http.StatusServiceUnavailable && strings.Contains(string(answer), "the broker is unavailable, ")
		if named {
			s.t.Logf("%d %s", code, answer)
		}
		return named
	})
	time.Sleep(cutFor - time.Since(began))
	for _, n := range away {
		s.check(n.start())
	}
	s.nodes.awaitCurrent()
	s.deliverGuest(g)
}

// twoWith returns a node and one other.
func (c *cluster) twoWith(first *node) []*node {
	for _, n := range c.nodes {
		if n != first {
			return []*node{first, n}
		}
	}
	return nil
}

// loseDisk removes the leader of TRACES permanently, while acknowledged traces are not yet
// rows. It starts a node with an empty disk in its place once the other nodes have
// leaders: earlier, the vote of the empty node could elect a node that lacks data.
func (s *site) loseDisk(*rand.Rand) {
	s.t.Helper()
	leader := s.nodes.leader(role{stream.Traces, ""})
	s.check(s.verifier.kill())
	pipelinetest.Await(s.t, "acknowledged traces that are no rows", func() bool {
		state, err := s.client.StreamState(background, stream.Traces)
		return err == nil && state.Messages > s.counts().Traces+chunk
	})
	s.check(leader.kill())
	if err := os.RemoveAll(filepath.Join(leader.dir, "store")); err != nil {
		s.t.Fatal(err)
	}
	if s.place.nats.Replicas > 1 {
		for _, of := range roles() {
			s.t.Logf("%s lost its disk, %s leads %s", leader.name, s.nodes.leader(of).name, of)
		}
	}
	s.check(leader.start())
	s.nodes.awaitCurrent()
	s.check(s.verifier.start())
	s.verifier.awaitReady()
}

// newCluster starts three nodes on loopback.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	all := make([]nodeSettings, 3)
	for i := range all {
		all[i] = nodeSettings{
			Host: "127.0.0.1", PeerHost: "127.0.0.1", Client: freePort(t), Monitor: freePort(t), Peer: freePort(t),
		}
	}
	return startCluster(t, all)
}
