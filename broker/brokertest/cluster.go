package brokertest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/child"
)

// readyWithin bounds how long a node may take to accept connections.
const readyWithin = 30 * time.Second

// Cluster is a cluster of brokers in a test's own process, with the settings that the
// durability guarantee needs. Its nodes can be stopped and restarted one by one.
type Cluster struct {
	t       testing.TB
	options []*server.Options
	nodes   []*server.Server // nil: stopped
}

// NewCluster runs a cluster until the test ends. It does not wait until the nodes have
// elected a leader.
func NewCluster(t testing.TB, nodes int) *Cluster {
	t.Helper()
	ports := make([]int, 3*nodes)
	for i := range ports {
		var err error
		if ports[i], err = child.FreePort("127.0.0.1", 0); err != nil {
			t.Fatal(err)
		}
		reserve(t, ports[i])
	}
	var routes []*url.URL
	for i := range nodes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[3*i])})
	}
	c := &Cluster{t: t, nodes: make([]*server.Server, nodes)}
	for i := range nodes {
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprintf("node-%d", i),
			Host:       "127.0.0.1", Port: ports[3*i+1],
			HTTPHost: "127.0.0.1", HTTPPort: ports[3*i+2],
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, MaxPayload: 8 << 20,
			NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "plumbline", Host: "127.0.0.1", Port: ports[3*i]},
			Routes:  routes,
		})
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.Stop(i)
		}
	})
	for i := range c.nodes {
		c.Start(i)
	}
	return c
}

// URL returns the list of the nodes' addresses for clients; it stays the same over restarts.
func (c *Cluster) URL() (list string) {
	for i, o := range c.options {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("nats://127.0.0.1:%d", o.Port)
	}
	return list
}

// MonitorURL returns the base URL of a node's monitoring pages.
func (c *Cluster) MonitorURL(node int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", c.options[node].HTTPPort)
}

// Options returns the settings of a node; a change takes effect at its next start.
func (c *Cluster) Options(node int) *server.Options { return c.options[node] }

// Start starts a stopped node on the same address with the same data.
func (c *Cluster) Start(node int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[node])
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.nodes[node] = s
	if !s.ReadyForConnections(readyWithin) {
		c.t.Fatalf("node %d of the broker does not accept connections", node)
	}
}

// Stop stops a node; its clients lose their connection.
func (c *Cluster) Stop(node int) {
	if s := c.nodes[node]; s != nil {
		s.Shutdown()
		s.WaitForShutdown()
		c.nodes[node] = nil
	}
}

// Leader returns the number of the node that leads a stream of the default account, or
// -1 while the nodes elect one.
func (c *Cluster) Leader(stream string) int {
	for i, s := range c.nodes {
		if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			return i
		}
	}
	return -1
}
