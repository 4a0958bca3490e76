package accounts_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// agents are the agents of the tests; the second id needs escapes, and the third is the name of
// a service.
var agents = []string{"a", "did:web:b.example", "ingest"}

// foreign lists subjects on which an agent may not publish: all except its own.
var foreign = []string{
	"aap.trace.ingest", "aap.trace.did=3Aweb=3Ab=2Eexample", "aap.trace.A", "aap.trace.a.b", "aap.trace", "traces.0.a",
	"aap.ledger.a", "aap.handshake.ingest.a", "aap.coherence.a", "aap.alert.drift.a", "aap.bundle.sealed",
	"receipts.0", "ledger.BOOT", "deadletter.ingest", "deadletter.marks",
	"$KV.cards.x", "$KV.revocations.x", "$KV.seals.x", "$KV.leases.x", "$KV.messages.x", "$KV.handshakes.x", "$O.bundles.M.x",
	"$JS.API.INFO", "$JS.API.STREAM.INFO.TRACES", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.UPDATE.TRACES", "$JS.API.STREAM.PURGE.TRACES",
	"$JS.API.STREAM.DELETE.TRACES", "$JS.API.STREAM.MSG.DELETE.TRACES", "$JS.API.STREAM.MSG.GET.TRACES", "$JS.API.DIRECT.GET.TRACES",
	"$JS.API.CONSUMER.CREATE.TRACES", "$JS.API.CONSUMER.RESET.TRACES.verifier", "$JS.API.CONSUMER.MSG.NEXT.TRACES.verifier",
	"$JS.ACK.TRACES.verifier.1.1.1.1.0", "$JS.FC.TRACES.x", "$SRV.PING", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.AUTH",
	"_INBOX.x", "_INBOX_agent.ingest.x", "_INBOX_service.ingest.x", "anything",
}

// unheard lists subjects to which an agent may not subscribe: all except its own inbox.
var unheard = []string{
	">", "*", "_INBOX.>", "_INBOX_agent.>", "_INBOX_agent.*.>", "_INBOX_agent.ingest.>", "_INBOX_service.>", "_INBOX_service.ingest.>",
	"aap.>", "aap.trace.>", "aap.trace.a", "aap.alert.>", "aap.handshake.*.*", "traces.>", "deadletter.>", "receipts.>", "ledger.>",
	"$KV.>", "$JS.>", "$JS.ACK.>", "$SRV.>", "$SYS.>",
}

// An agent publishes on its own subject, reads its own inbox, and may do nothing else.
func TestAgentActsOnlyForItself(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents})
	s.client(stream.RoleOperator)
	for _, agent := range agents {
		conn := s.connect(agent)
		if ack, err := publish(t, conn, agent, nil); err != nil || ack.Stream != stream.Traces {
			t.Fatalf("agent %s: its own trace: %+v, %v", agent, ack, err)
		}
	}
	checkRefusals(t, s.connect("a"))
}

// checkRefusals tries everything that agent "a" may not do.
func checkRefusals(t *testing.T, conn *nats.Conn) {
	t.Helper()
	for _, subject := range foreign {
		if err := conn.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if !refused(t, conn, subject) {
			t.Errorf("an agent may publish on %s: %v", subject, conn.LastError())
		}
	}
	for _, subject := range unheard {
		sub, err := conn.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		if !refused(t, conn, subject) {
			t.Errorf("an agent may subscribe to %s: %v", subject, conn.LastError())
		}
		_ = sub.Unsubscribe()
	}
}

// publish publishes a trace of an agent and returns the broker's answer.
func publish(t testing.TB, conn *nats.Conn, agent string, header nats.Header) (*jetstream.PubAck, error) {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	data := pipelinetest.Trace("tr-"+nats.NewInbox(), agent, "ac-"+agent, "s", "2026-02-01T00:00:00Z", "search").Data
	return js.PublishMsg(ctx, &nats.Msg{Subject: subject.Trace(agent), Data: data, Header: header}, jetstream.WithRetryAttempts(0))
}

// If configured, agents publish entries of their ledgers and messages of handshakes,
// under their own names.
func TestAgentUse(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents, Use: stream.AgentUse{Ledgers: true, Handshakes: true}})
	operator := s.client(stream.RoleOperator)
	conn := s.connect("a")
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if ack, err := js.Publish(t.Context(), subject.Ledger("a"), []byte("{}")); err != nil || ack.Stream != stream.AgentLedger {
		t.Errorf("an entry of its ledger: %+v, %v", ack, err)
	}
	for _, other := range []string{subject.Ledger("ingest"), subject.Handshake("a", "ingest"), subject.Coherence("a")} {
		if err := conn.Publish(other, nil); err != nil || !refused(t, conn, other) {
			t.Errorf("%s is not refused: %v", other, err)
		}
	}
	state, err := operator.StreamState(t.Context(), stream.AgentLedger)
	if err != nil || state.Messages != 1 {
		t.Errorf("%d entries of ledgers, %v", state.Messages, err)
	}
	if _, err := conn.Request(subject.Handshake("ingest", "a"), nil, 5*time.Second); !errors.Is(err, nats.ErrNoResponders) || refused(t, conn, subject.Handshake("ingest", "a")) {
		t.Errorf("a handshake message that nobody serves: %v", err)
	}
}

// A user with a password has the same rights; a wrong password or none gives no rights.
func TestPasswords(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents, Passwords: true})
	login := func(who string) []nats.Option {
		u := s.users[who]
		secret, err := os.ReadFile(u.Secret)
		if err != nil {
			t.Fatal(err)
		}
		return []nats.Option{nats.UserInfo(u.Login, strings.TrimSpace(string(secret))), nats.CustomInboxPrefix(u.Inbox)}
	}
	up := s.users[string(stream.RoleUp)]
	secret, err := os.ReadFile(up.Secret)
	if err != nil {
		t.Fatal(err)
	}
	client, err := stream.Connect(t.Context(), stream.Config{
		URL: "nats://" + s.address, User: up.Login, Password: strings.TrimSpace(string(secret)), InboxPrefix: up.Inbox,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pipelinetest.EnsureTopology(t, client)
	conn := dial(t, s.address, login("a")...)
	if _, err := publish(t, conn, "a", nil); err != nil {
		t.Error(err)
	}
	checkRefusals(t, conn)
	for name, options := range map[string][]nats.Option{
		"another's password": {nats.UserInfo(s.users["ingest"].Login, strings.TrimSpace(string(secret)))},
		"no login":           {},
	} {
		if conn, err := nats.Connect("nats://"+s.address, options...); err == nil {
			conn.Close()
			t.Errorf("%s: the server accepts it", name)
		}
	}
}

// The server reloads a configuration that was rewritten while it runs: removed users are
// disconnected, and the others stay connected.
func TestAgentsComeAndGo(t *testing.T) {
	cfg := accounts.Config{Dir: t.TempDir(), Account: "PLUMBLINE", Agents: []string{"a", "gone"}}
	s := serve(t, cfg)
	s.client(stream.RoleOperator)
	staying, closed := s.connect("a"), make(chan struct{})
	s.connect("gone", nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	cfg.Agents = []string{"a", "new"}
	for _, u := range write(t, cfg) {
		s.users[string(u.Role)+u.Agent] = u
	}
	if err := s.server.Reload(); err != nil {
		t.Fatal(err)
	}
	<-closed
	for agent, conn := range map[string]*nats.Conn{"a": staying, "new": s.connect("new")} {
		if _, err := publish(t, conn, agent, nil); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
	login, err := nats.NkeyOptionFromSeed(s.users["gone"].Secret)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := nats.Connect("nats://"+s.address, login); err == nil {
		conn.Close()
		t.Error("an agent that is not in the configuration any more logs in")
	}
}
