package opledger_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// agents publishes entries of agents' ledgers.
type agents struct {
	t    *testing.T
	rig  *pipelinetest.Rig
	conn *nats.Conn
}

func newAgents(t *testing.T, rig *pipelinetest.Rig) agents {
	conn, err := nats.Connect(rig.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return agents{t, rig, conn}
}

func (a agents) send(agent string, lines ...string) {
	a.t.Helper()
	for _, line := range lines {
		if _, err := a.conn.Request(subject.Ledger(agent), []byte(line), 10*time.Second); err != nil {
			a.t.Fatal(err)
		}
	}
}

// wantHonest checks that every entry is valid and that nobody is accused.
func (a agents) wantHonest(entries uint64) {
	a.t.Helper()
	if got := a.rig.Number(a.t, "SELECT count() FROM visible_ledger WHERE fault = '' AND ledger != ''"); got != entries {
		a.t.Errorf("%d valid entries are rows, want %d", got, entries)
	}
	state, err := a.rig.Client.StreamState(a.t.Context(), stream.Alerts)
	if err != nil || state.Messages > 0 {
		a.t.Errorf("%d alerts on honest agents, error %v", state.Messages, err)
	}
}

// dying runs an auditor that is ended once an insert was refused.
func (a agents) dying(rows opledger.AuditRows) (kill func()) {
	env := pipelinetest.Env(a.t, "exporter")
	env.DrainBudget = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- (&opledger.Auditor{Env: env, Broker: opledger.On(a.rig.Client), Rows: rows}).Run(ctx) }()
	return func() {
		a.t.Helper()
		cancel()
		if err := <-ended; err == nil {
			a.t.Error("the auditor has stored its batch")
		}
	}
}

// halfway stores the rows of one agent only, as an INSERT over two shards does when one refuses.
type halfway struct {
	opledger.AuditRows
	agent   string
	refused chan struct{}
}

func (h *halfway) InsertLedger(ctx context.Context, entries []store.LedgerEntry) error {
	some := slices.DeleteFunc(slices.Clone(entries), func(e store.LedgerEntry) bool { return e.Ledger != h.agent })
	if err := h.AuditRows.InsertLedger(ctx, some); err != nil || len(some) == 0 {
		return errors.Join(errors.New("nothing of the agent is stored"), err)
	}
	select {
	case h.refused <- struct{}{}:
	default:
	}
	return errors.New("a shard refuses")
}

// A crash after a part of an INSERT leaves rows missing that are older than the newest one. The next
// auditor stores them, and accuses nobody of the gap.
func TestHalfABatchIsReadAgain(t *testing.T) {
	rig := pipelinetest.New(t)
	from := newAgents(t, rig)
	honest, _ := agentLedger(t, ledger.Opening{Agent: "honest", Created: streamMade}, 3)
	other, _ := agentLedger(t, ledger.Opening{Agent: "other", Created: streamMade}, 3)
	first := auditor(t, rig)
	from.send("honest", honest[0])
	from.send("other", other[0])
	await(t, rig, "fault = ''", 2)
	first.Stop(t)
	from.send("honest", honest[1])
	from.send("other", other[1])
	rows := &halfway{AuditRows: rig.Store, agent: "other", refused: make(chan struct{}, 1)}
	kill := from.dying(rows)
	<-rows.refused
	kill()
	await(t, rig, "ledger = 'other'", 2)
	await(t, rig, "ledger = 'honest'", 1)
	second := auditor(t, rig)
	from.send("honest", honest[2:]...)
	from.send("other", other[2:]...)
	await(t, rig, "ledger = 'other'", 4)
	await(t, rig, "ledger = 'honest'", 4)
	second.Stop(t)
	from.wantHonest(8)
}

// The same with two real shards, of which one refuses inserts for a moment.
func TestShardThatRefusesAccusesNobody(t *testing.T) {
	if !enginetest.Sharded() {
		t.Skip("it needs two shards: make shards")
	}
	rig := pipelinetest.New(t)
	from := newAgents(t, rig)
	const several = 12
	var lines [several][]string
	for i := range lines {
		lines[i], _ = agentLedger(t, ledger.Opening{Agent: fmt.Sprint("agent-", i), Created: streamMade}, 2)
	}
	send := func(n int) {
		t.Helper()
		for i := range lines {
			from.send(fmt.Sprint("agent-", i), lines[i][n])
		}
	}
	send(0)
	kill := from.dying(rig.Store)
	await(t, rig, "fault = ''", several)
	local := func() uint64 { return rig.Number(t, "SELECT count() FROM ledger_local WHERE ledger != ''") } // of the first shard
	before := local()
	if before == 0 || before == several {
		t.Fatalf("the first shard has %d of %d ledgers", before, several)
	}
	refuseInserts(t, rig, 1, true)
	send(1)
	pipelinetest.Await(t, "the rows of one shard", func() bool { return local() > before })
	kill()
	refuseInserts(t, rig, 1, false)
	second := auditor(t, rig)
	send(2)
	await(t, rig, "ledger != ''", 3*several)
	second.Stop(t)
	from.wantHonest(3 * several)
}

// refuseInserts makes a shard refuse rows of ledgers (TOO_MANY_PARTS), as one does whose disk is full.
func refuseInserts(t *testing.T, rig *pipelinetest.Rig, shard int, refuse bool) {
	t.Helper()
	server, err := url.Parse(enginetest.Shards(t)[shard].AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := url.Parse(rig.DSN)
	if err != nil {
		t.Fatal(err)
	}
	server.Path = whole.Path
	options, err := clickhouse.ParseDSN(server.String())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := clickhouse.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	statement := "ALTER TABLE ledger_local RESET SETTING parts_to_throw_insert"
	if refuse {
		statement = "ALTER TABLE ledger_local MODIFY SETTING parts_to_throw_insert = 1"
	}
	if err := errors.Join(admin.Exec(t.Context(), statement), admin.Close()); err != nil {
		t.Fatal(err)
	}
}

// A ledger goes on after its stream was removed and created again. An agent that sends all its entries
// again repeats them. A ledger that begins anew hides the earlier entries, and is reported.
func TestLedgersGoOnInANewStream(t *testing.T) {
	rig := pipelinetest.New(t)
	from := newAgents(t, rig)
	next, _ := agentLedger(t, ledger.Opening{Agent: "next", Created: streamMade}, 3)
	again, _ := agentLedger(t, ledger.Opening{Agent: "again", Created: streamMade}, 3)
	first := auditor(t, rig)
	from.send("next", next[:2]...)
	from.send("again", again[:2]...)
	await(t, rig, "fault = ''", 4)
	first.Stop(t)
	rig.Recreate(t, stream.AgentLedger)
	second := auditor(t, rig)
	from.send("next", next[2])
	from.send("again", again[:3]...)
	await(t, rig, "fault = ''", 6)
	second.Stop(t)
	third := auditor(t, rig) // the new stream has entries of both
	from.send("next", next[3])
	from.send("again", again[3])
	await(t, rig, "fault = ''", 8)
	await(t, rig, "ledger = 'again' AND startsWith(fault, 'repeat: ')", 2)
	from.wantHonest(8)
	anew, _ := agentLedger(t, ledger.Opening{Agent: "next", Created: streamMade.Add(1)}, 0)
	from.send("next", anew...)
	await(t, rig, "ledger = 'next' AND startsWith(fault, 'continuation: ')", 1)
	third.Stop(t)
}
