package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// tenant is one of several tenants on a NATS cluster.
type tenant struct {
	*site
	name string
	dir  string // of its accounts.conf and its bundles
}

// tenantsOn writes the accounts of tenants, each with agent x, and runs servers that include
// them all, one or a cluster. In a cluster, the tenants connect to different servers.
func tenantsOn(t *testing.T, servers int, names ...string) (tenants []*tenant) {
	t.Helper()
	dir, includes := t.TempDir(), ""
	for _, name := range names {
		n := &tenant{name: name, dir: filepath.Join(dir, name), site: &site{t: t, users: map[string]accounts.User{}}}
		for _, u := range write(t, accounts.Config{Dir: n.dir, Account: name, Agents: []string{"x"}}) {
			n.users[string(u.Role)+u.Agent] = u
		}
		includes += fmt.Sprintf("  include %q\n", filepath.Join(name, accounts.FileName))
		tenants = append(tenants, n)
	}
	addresses := startServers(t, servers, dir, "accounts {\n"+includes+"}")
	for i, n := range tenants {
		n.address = addresses[i%len(addresses)]
	}
	return tenants
}

// startServers runs one server, or a cluster. In addition to the users of the configuration,
// each account has a user with all rights, whose name and password are the account's name.
func startServers(t *testing.T, n int, dir, configuration string) (addresses []string) {
	t.Helper()
	var routes []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, "nats://"+listener.Addr().String())
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var servers []*server.Server
	for i, route := range routes {
		file := filepath.Join(dir, fmt.Sprintf("server-%d.conf", i))
		text := fmt.Sprintf("server_name: \"node-%d\"\nlisten: \"127.0.0.1:-1\"\njetstream { store_dir: %q, sync_interval: always }\nmax_payload: 8MB\n"+
			"%s\n", i, filepath.Join(dir, fmt.Sprint("store-", i)), configuration)
		if n > 1 {
			text += fmt.Sprintf("cluster { name: \"shared\", listen: %q, routes: [%s] }\n", strings.TrimPrefix(route, "nats://"), strings.Join(routes, ", "))
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		options, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		options.NoSigs, options.NoLog = true, true
		for _, account := range options.Accounts {
			options.Users = append(options.Users, &server.User{Username: account.Name, Password: account.Name, Account: account})
		}
		s, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(s.WaitForShutdown)
		t.Cleanup(s.Shutdown)
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("a server does not start")
		}
		addresses = append(addresses, s.Addr().String())
	}
	return addresses
}

// broker returns the configuration of a connection of one of the tenant's roles.
func (n *tenant) broker(role stream.Role) stream.Config {
	config := n.site.broker(role)
	config.Tenant = n.name
	return config
}

// begin creates the tenant's streams.
func (n *tenant) begin() *stream.Client {
	n.t.Helper()
	client, err := stream.Connect(n.t.Context(), n.broker(stream.RoleUp))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = client.Close() })
	pipelinetest.EnsureTopology(n.t, client)
	return client
}

// publish registers a card, publishes a trace as agent x, and requests sealing of its session.
// Every tenant's trace has the same bytes.
func (n *tenant) publish(client *stream.Client) {
	n.t.Helper()
	registry, err := cards.Open(n.t.Context(), client, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, _, err = registry.Put(n.t.Context(), pipelinetest.Card("ac", "x")); err != nil {
		n.t.Fatal(err)
	}
	n.publishTrace("2026-02-01T00:00:00Z")
	if err := client.RequestEnd(n.t.Context(), subject.Partition("x"), wire.EndRequest{AgentID: "x", SessionID: "s", ThroughSequence: 1}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *tenant) publishTrace(at string) {
	n.t.Helper()
	trace := pipelinetest.Trace("tr", "x", "ac", "s", at, "search")
	if answer, err := n.connect("x").Request(subject.Trace("x"), trace.Data, 30*time.Second); err != nil || !strings.Contains(string(answer.Data), `"stream":"TRACES"`) {
		n.t.Fatalf("publish a trace of %s: %+v, %v", n.name, answer, err)
	}
}

// administrator connects as the user with all rights in the tenant's account.
func (n *tenant) administrator(address string) *nats.Conn {
	n.t.Helper()
	return dial(n.t, address, nats.UserInfo(n.name, n.name))
}

// ear subscribes to everything in the tenant's account, at one of the servers.
func (n *tenant) ear(address string) *nats.Subscription {
	n.t.Helper()
	conn := n.administrator(address)
	sub, err := conn.SubscribeSync(">")
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return sub
}

// hear returns the subjects that an ear receives before a given subject.
func (n *tenant) hear(ear *nats.Subscription, last string) (before []string) {
	n.t.Helper()
	for {
		m, err := ear.NextMsg(time.Minute)
		if err != nil {
			n.t.Fatalf("%s is not heard in account %s, but %q: %v", last, n.name, before, err)
		}
		if strings.HasPrefix(m.Subject, last) {
			return before
		}
		before = append(before, m.Subject)
	}
}

// Two tenants on one NATS cluster have streams, buckets and consumers with the same names.
// A user with all rights in one account neither receives nor reaches anything of the other
// account, at any server.
func TestTenantsShareNoSubject(t *testing.T) {
	both := tenantsOn(t, 3, "EAST", "WEST")
	east, west := both[0], both[1]
	witness, ears := east.ear(west.address), []*nats.Subscription{west.ear(east.address), west.ear(west.address)}
	client := east.begin()
	east.publish(client)
	for _, subject := range []string{"$JS.EVENT.ADVISORY.STREAM.CREATED.TRACES", "$KV.cards.", "aap.trace.x"} {
		east.hear(witness, subject)
	}
	if err := west.administrator(east.address).Publish("done", nil); err != nil {
		t.Fatal(err)
	}
	for _, ear := range ears {
		if heard := west.hear(ear, "done"); len(heard) > 0 {
			t.Errorf("account WEST hears %q", heard)
		}
		if err := ear.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	west.reachesNothing()
	east.publishTrace("2026-02-01T00:00:01Z")
	if state, err := client.StreamState(t.Context(), stream.Traces); err != nil || state.Messages != 3 { // two traces and a request
		t.Errorf("the traces of EAST: %+v, %v", state, err)
	}
	if progress, err := allPending(t.Context(), client, 3); err != nil || progress.Deliveries != 0 || progress.Pending != 3 {
		t.Errorf("the verifier's consumer of EAST: %+v, %v", progress, err)
	}
}

// allPending returns the progress of the verifier's consumer once it counts a number of messages,
// or after half a minute. The server that leads the consumer may have a message later than the
// one that acknowledged it.
func allPending(ctx context.Context, client *stream.Client, messages uint64) (progress stream.Progress, err error) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		progress, err = client.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
		if err != nil || progress.Pending >= messages {
			break
		}
	}
	return progress, err
}

// reachesNothing uses an account without streams. It tries to read, change and remove the
// streams of the other account, and to publish into them.
func (n *tenant) reachesNothing() {
	n.t.Helper()
	conn := n.administrator(n.address)
	names := []string{stream.Traces, stream.Receipts, stream.Ledger, "KV_" + stream.Cards, "KV_" + stream.Seals}
	for _, name := range names {
		for request, body := range map[string]string{
			"STREAM.INFO." + name: "", "STREAM.PURGE." + name: "", "STREAM.DELETE." + name: "", "STREAM.MSG.GET." + name: `{"seq":1}`,
			"CONSUMER.INFO." + name + "." + stream.VerifierConsumer: "",
		} {
			answer, err := conn.Request("$JS.API."+request, []byte(body), 30*time.Second)
			if err != nil || !strings.Contains(string(answer.Data), "not found") {
				n.t.Errorf("%s in %s: %+v, %v", request, n.name, answer, err)
			}
		}
	}
	pipelinetest.Await(n.t, "no subscription of a test to be left in "+n.name, func() bool {
		_, err := conn.Request("nobody", nil, 30*time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	// Only a stream or a consumer could answer these requests. Without one the server answers that
	// nobody is there.
	subjects := []string{subject.Trace("x"), "receipts.0", "$KV.cards.x", "$KV.leases.drift"}
	for _, name := range names {
		subjects = append(subjects, "$JS.API.DIRECT.GET."+name, "$JS.API.CONSUMER.MSG.NEXT."+name+"."+stream.VerifierConsumer)
	}
	for _, answer := range append(n.ask(conn, subjects...), n.ask(n.connect("x"), subject.Trace("x"))...) {
		if answer.Header.Get("Status") != "503" || len(answer.Data) > 0 {
			n.t.Errorf("in %s there is an answer: %+v", n.name, answer)
		}
	}
	if answer, err := conn.Request("$JS.API.STREAM.NAMES", nil, 30*time.Second); err != nil || !strings.Contains(string(answer.Data), `"total":0`) {
		n.t.Errorf("the streams of %s: %+v, %v", n.name, answer, err)
	}
}

// ask publishes a request on each subject, and returns as many answers.
func (n *tenant) ask(conn *nats.Conn, subjects ...string) (received []*nats.Msg) {
	n.t.Helper()
	inbox, arrived := conn.NewRespInbox(), make(chan *nats.Msg, len(subjects))
	_, err := conn.ChanSubscribe(inbox, arrived)
	for _, subject := range subjects {
		err = errors.Join(err, conn.PublishRequest(subject, inbox, []byte(`{"seq":1}`)))
	}
	if err != nil {
		n.t.Fatal(err)
	}
	for range subjects {
		select {
		case answer := <-arrived:
			received = append(received, answer)
		case <-time.After(30 * time.Second):
			n.t.Fatalf("%d of %d answers in %s to %q", len(received), len(subjects), n.name, subjects)
		}
	}
	return received
}
