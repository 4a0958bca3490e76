package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// needsNamespaces returns why no network namespace can be created here, or "".
func needsNamespaces() string {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "network namespaces need Linux and root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "network namespaces need ip (package iproute2)"
	}
	return ""
}

// wired counts the clusters of newWiredCluster: the kernel releases the names of namespaces
// some time after they are deleted.
var wired int

// newWiredCluster starts three nodes, each in its own network namespace with two
// interfaces: "peer" leads to the other nodes, "client" to this process and its services.
func newWiredCluster(t testing.TB) *cluster {
	t.Helper()
	wired++
	name := fmt.Sprintf("pl-nodes-%d-%d", os.Getpid(), wired)
	subnet := fmt.Sprintf("10.213.%d", os.Getpid()%250)
	hub := name + "-hub"
	addSpace(t, hub)
	ip(t, "-n", hub, "link", "add", "bridge", "type", "bridge")
	ip(t, "-n", hub, "link", "set", "bridge", "up")
	all := make([]nodeSettings, 3)
	for i := range all {
		space, port, veth := fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("port%d", i), fmt.Sprintf("pl%dn%d", os.Getpid(), i)
		addSpace(t, space)
		ip(t, "link", "add", "peer", "netns", space, "type", "veth", "peer", "name", port, "netns", hub)
		ip(t, "-n", hub, "link", "set", port, "master", "bridge", "up")
		ip(t, "-n", space, "address", "add", fmt.Sprintf("10.214.0.%d/24", i+1), "dev", "peer")
		ip(t, "-n", space, "link", "set", "peer", "up")
		ip(t, "link", "add", "client", "netns", space, "type", "veth", "peer", "name", veth)
		t.Cleanup(func() { ip(t, "link", "delete", veth) }) // the kernel would delete it later
		ip(t, "address", "add", fmt.Sprintf("%s.%d/30", subnet, 4*i+1), "dev", veth)
		ip(t, "link", "set", veth, "up")
		ip(t, "-n", space, "address", "add", fmt.Sprintf("%s.%d/30", subnet, 4*i+2), "dev", "client")
		ip(t, "-n", space, "link", "set", "client", "up")
		all[i] = nodeSettings{
			Host: fmt.Sprintf("%s.%d", subnet, 4*i+2), PeerHost: fmt.Sprintf("10.214.0.%d", i+1),
			Client: 4222, Monitor: 8222, Peer: 6222, space: space,
		}
	}
	return startCluster(t, all)
}

// addSpace creates a network namespace; it is deleted when the test ends.
func addSpace(t testing.TB, name string) {
	t.Helper()
	ip(t, "netns", "add", name)
	t.Cleanup(func() { ip(t, "netns", "delete", name) })
	ip(t, "-n", name, "link", "set", "lo", "up")
}

// ip runs a command of iproute2.
func ip(t testing.TB, args ...string) {
	t.Helper()
	if err := tryIP(args...); err != nil {
		t.Error(err)
	}
}

func tryIP(args ...string) error {
	if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// cut disables an interface of a node, "peer" or "client". The returned function
// enables it again.
func (n *node) cut(link string) (join func() error, err error) {
	return func() error { return tryIP("-n", n.space, "link", "set", link, "up") },
		tryIP("-n", n.space, "link", "set", link, "down")
}
