package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// nodeVariable makes the test's program run as a server of a cluster; its value is the
// server's configuration file.
const nodeVariable = "PLUMBLINE_TEST_NODE"

// runNode runs a server until the process is killed.
func runNode(config string) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

// nodeConfig is the configuration of a server with the settings that docs/GUARANTEES.md requires.
var nodeConfig = template.Must(template.New("").Parse(`server_name: {{.Name}}
listen: "{{.Host}}:{{.Client}}"
http: "{{.Host}}:{{.Monitor}}"
max_payload: 8MB
log_file: "{{.Dir}}/node.log"
jetstream { store_dir: "{{.Dir}}/store", sync_interval: always }
cluster {
  name: plumbline
  listen: "{{.PeerHost}}:{{.Peer}}"
  no_advertise: true
  routes: [{{range $i, $route := .Routes}}{{if $i}}, {{end}}"{{$route}}"{{end}}]
}
`))

// node is a server of a cluster, in a process of its own.
type node struct {
	*service
	dir     string
	client  string // address
	monitor string // URL
	space   string // network namespace; "": none
}

// cluster is a broker with several nodes.
type cluster struct {
	t     testing.TB
	nodes []*node
}

// nodeSettings are the parameters of a node's configuration. Hosts are those on which it listens
// for clients and for its peers.
type nodeSettings struct {
	Name, Dir, Host, PeerHost string
	Client, Monitor, Peer     int
	Routes                    []string
	space                     string
}

func startCluster(t testing.TB, all []nodeSettings) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var routes []string
	for _, n := range all {
		routes = append(routes, fmt.Sprintf("nats://%s:%d", n.PeerHost, n.Peer))
	}
	for i, settings := range all {
		settings.Name, settings.Dir, settings.Routes = fmt.Sprintf("node-%d", i), t.TempDir(), routes
		c.nodes = append(c.nodes, startNode(t, &settings))
	}
	return c
}

func startNode(t testing.TB, settings *nodeSettings) *node {
	t.Helper()
	var text strings.Builder
	if err := nodeConfig.Execute(&text, settings); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(settings.Dir, "node.conf")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := &service{name: settings.Name, program: self, env: append(environment(), nodeVariable+"="+config)}
	if settings.space != "" {
		if process.program, err = exec.LookPath("ip"); err != nil {
			t.Fatal(err)
		}
		process.args = []string{"netns", "exec", settings.space, self}
	}
	return &node{
		service: run(t, process), dir: settings.Dir, space: settings.space,
		client:  fmt.Sprintf("%s:%d", settings.Host, settings.Client),
		monitor: fmt.Sprintf("http://%s:%d", settings.Host, settings.Monitor),
	}
}

// config returns how clients reach the cluster, with streams on so many nodes.
func (c *cluster) config(replicas int) stream.Config {
	var urls, monitors []string
	for _, n := range c.nodes {
		urls, monitors = append(urls, "nats://"+n.client), append(monitors, n.monitor)
	}
	return stream.Config{URL: strings.Join(urls, ","), MonitorURL: strings.Join(monitors, ","), Replicas: replicas}
}

// ask reads a monitoring page of a node.
func (n *node) ask(page string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(n.monitor + page)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: %s", n.monitor, page, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// awaitCurrent waits until every node has caught up with its peers.
func (c *cluster) awaitCurrent() {
	c.t.Helper()
	for _, n := range c.nodes {
		pipelinetest.Await(c.t, n.name+" to have caught up", func() bool {
			var health struct{ Status string }
			return n.ask("/healthz", &health) == nil && health.Status == "ok"
		})
	}
}

// role is what a node can lead: a stream, or a consumer of it.
type role struct{ stream, consumer string }

func (r role) String() string { return strings.TrimSpace(r.stream + " " + r.consumer) }

// leader waits until a node leads the role and returns that node.
func (c *cluster) leader(of role) (leader *node) {
	c.t.Helper()
	pipelinetest.Await(c.t, "a leader of "+of.String(), func() bool {
		for _, n := range c.nodes {
			if n.leads(of) {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// leads reports whether a node states that it leads.
func (n *node) leads(wanted role) bool {
	var info server.JSInfo
	if n.ask("/jsz?accounts=true&streams=true&consumers=true", &info) != nil {
		return false
	}
	for _, account := range info.AccountDetails {
		for _, s := range account.Streams {
			if s.Name != wanted.stream || s.Cluster == nil {
				continue
			}
			if wanted.consumer == "" {
				return s.Cluster.Leader == n.name
			}
			for _, consumer := range s.Consumer {
				if consumer.Name == wanted.consumer && consumer.Cluster != nil {
					return consumer.Cluster.Leader == n.name
				}
			}
		}
	}
	return false
}

// entry waits until a node has a connection with that name and returns the node.
func (c *cluster) entry(name string) (entry *node) {
	c.t.Helper()
	pipelinetest.Await(c.t, "a connection of "+name, func() bool {
		for _, n := range c.nodes {
			var connections server.Connz
			if n.ask("/connz", &connections) != nil {
				continue
			}
			for _, connection := range connections.Conns {
				if connection.Name == name {
					entry = n
					return true
				}
			}
		}
		return false
	})
	return entry
}

// stop suspends a node; its connections stay open. The returned function resumes it.
func (n *node) stop() (resume func() error, err error) {
	pid := n.cmd.Process.Pid
	return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
}
