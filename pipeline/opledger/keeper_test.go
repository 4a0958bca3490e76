package opledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

func keeper(t *testing.T, rig *pipelinetest.Rig, dir string) *pipelinetest.Stage {
	t.Helper()
	k := &opledger.Keeper{Env: pipelinetest.Env(t, "exporter"), Dir: dir, Name: "operator", Rotation: small, Broker: opledger.On(rig.Client), Rows: rig.Store,
		Confirm: func(context.Context) error { return nil }}
	return pipelinetest.Go(t, k.Run)
}

// A keeper without the lease chains nothing.
func TestKeeperWithoutTheLeaseEnds(t *testing.T) {
	rig, dir := pipelinetest.New(t), t.TempDir()
	claim(t, rig, 1, 3)
	lost := errors.New("the lease is another's")
	k := &opledger.Keeper{Env: pipelinetest.Env(t, "exporter"), Dir: dir, Name: "operator", Rotation: small, Broker: opledger.On(rig.Client), Rows: rig.Store,
		Confirm: func(context.Context) error { return service.Permanent(lost) }}
	if err := k.Run(t.Context()); !errors.Is(err, lost) {
		t.Errorf("ended with %v", err)
	}
	await(t, rig, "type = 'CLAIM'", 0)
	wantNumbers(t, dir, 0)
}

func claim(t *testing.T, rig *pipelinetest.Rig, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		event := ledger.Event{Type: "CLAIM", ID: fmt.Sprint(n), Data: fmt.Appendf(nil, `{"n":%d}`, n)}
		if err := rig.Client.AppendLedger(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t *testing.T, rig *pipelinetest.Rig, where string, want uint64) {
	t.Helper()
	query := "SELECT count() FROM visible_ledger WHERE " + where
	pipelinetest.Await(t, fmt.Sprintf("%d rows where %s", want, where), func() bool {
		return rig.Number(t, query) == want
	})
}

func TestEventsOfTheStreamBecomeFilesAndRows(t *testing.T) {
	rig, dir := pipelinetest.New(t), t.TempDir()
	claim(t, rig, 1, 6)
	first := keeper(t, rig, dir)
	await(t, rig, "type = 'CLAIM'", 6)
	first.Stop(t)
	claim(t, rig, 7, 9)
	// A message that is not an event is skipped; the events around it are chained.
	if err := rig.Client.AppendLedger(t.Context(), ledger.Event{Type: "NOTE", ID: "x", Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	claim(t, rig, 10, 12)
	second := keeper(t, rig, dir)
	await(t, rig, "type = 'CLAIM'", 12)
	second.Stop(t)
	await(t, rig, "type = 'GENESIS'", 3)
	await(t, rig, "fault != '' OR ledger != ''", 0)
	wantNumbers(t, dir, 12)
}

// A keeper in a new directory, after the old one was lost, writes the same files again from the
// stream, byte by byte, and no second set of rows.
func TestLedgerIsRebuiltFromTheStream(t *testing.T) {
	rig, before, after := pipelinetest.New(t), t.TempDir(), t.TempDir()
	claim(t, rig, 1, 6)
	first := keeper(t, rig, before)
	await(t, rig, "type = 'CLAIM'", 6)
	claim(t, rig, 7, 9) // in another batch than later
	await(t, rig, "type = 'CLAIM'", 9)
	first.Stop(t)
	claim(t, rig, 10, 12)
	second := keeper(t, rig, after)
	await(t, rig, "type = 'CLAIM'", 12)
	second.Stop(t)
	third := keeper(t, rig, before)
	pipelinetest.Await(t, "the same files", func() bool { return ledgerText(t, before) == ledgerText(t, after) })
	third.Stop(t)
	wantNumbers(t, after, 12)
	await(t, rig, "type IN ('CLAIM', 'GENESIS')", 12+3)
}

// ledgerText returns the concatenated files of a ledger.
func ledgerText(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n%s", filepath.Base(file), data)
	}
	return text.String()
}

func TestRowsMissingAfterACrashAreStored(t *testing.T) {
	rig, dir := pipelinetest.New(t), t.TempDir()
	state, err := rig.Client.StreamState(t.Context(), stream.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	book := openBook(t, dir)
	lost := events(1, 3)
	for i := range lost {
		lost[i].Stream = state.Created
	}
	appendAll(t, book, lost)
	closeBook(t, book)
	claim(t, rig, 1, 3)
	stage := keeper(t, rig, dir)
	await(t, rig, "type = 'CLAIM'", 3)
	stage.Stop(t)
	wantNumbers(t, dir, 3)
}

// agentLedger returns the lines of a ledger of n claims after its genesis.
func agentLedger(t *testing.T, begin ledger.Opening, n int) (lines []string, c ledger.Chain) {
	t.Helper()
	data, err := begin.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 1 {
		kind := ledger.Claim
		if i == 0 {
			kind = ledger.Genesis
		} else {
			data = fmt.Appendf(nil, `{"n":%d}`, i)
		}
		entry, err := c.Append(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSuffix(string(entry.AppendLine(nil)), "\n"))
	}
	return lines, c
}

func auditor(t *testing.T, rig *pipelinetest.Rig) *pipelinetest.Stage {
	t.Helper()
	a := &opledger.Auditor{Env: pipelinetest.Env(t, "exporter"), Broker: opledger.On(rig.Client), Rows: rig.Store}
	return pipelinetest.Go(t, a.Run)
}

// TestAgentsLedgersAreVerifiedOnArrival covers a restart and a rotation. An invalid entry is kept
// with its fault and causes an alert. The chain continues after the last valid entry.
func TestAgentsLedgersAreVerifiedOnArrival(t *testing.T) {
	rig := pipelinetest.New(t)
	conn, err := nats.Connect(rig.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const agent = "did:web:a.example"
	send := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := conn.Request(subject.Ledger(agent), []byte(line), 10e9); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines, first := agentLedger(t, ledger.Opening{Agent: agent, Created: streamMade}, 3)
	last := first.Last()
	next, _ := agentLedger(t, ledger.Opening{Agent: agent, Created: streamMade, ContinuesFrom: &last}, 1)
	anew, _ := agentLedger(t, ledger.Opening{Agent: agent, Created: streamMade.Add(1)}, 1)
	changed := strings.Replace(lines[2], `{"n":2}`, `{"n":9}`, 1)

	running := auditor(t, rig)
	send(lines[0], lines[1], changed, lines[3], "no entry")
	await(t, rig, "ledger = '"+agent+"'", 5)
	running.Stop(t)
	send(lines[2], strings.Replace(lines[3], `{"n":3}`, `{"n":3.0}`, 1)) // a valid entry follows a valid entry, however an agent writes its numbers
	send(anew[0])                                                        // hides the past
	send(next...)
	running = auditor(t, rig)
	await(t, rig, "ledger = '"+agent+"'", 10)
	running.Stop(t)
	for _, c := range []struct {
		where string
		want  uint64
	}{
		{"fault = ''", 6},
		{"startsWith(fault, 'hash: ')", 1},
		{"startsWith(fault, 'gap: ')", 1},
		{"startsWith(fault, 'form: ')", 1},
		{"startsWith(fault, 'continuation: ')", 1},
	} {
		await(t, rig, "ledger = '"+agent+"' AND "+c.where, c.want)
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil || state.Messages != 4 {
		t.Errorf("%d alerts, error %v, want 4", state.Messages, err)
	}
}

// A database that is unavailable while an auditor starts does not end the auditor: it asks again.
func TestAuditorStartsWithoutADatabase(t *testing.T) {
	rig := pipelinetest.New(t)
	away := &awayOnce{AuditRows: rig.Store}
	a := &opledger.Auditor{Env: pipelinetest.Env(t, "exporter"), Broker: opledger.On(rig.Client), Rows: away}
	running := pipelinetest.Go(t, a.Run)
	const agent = "did:web:a.example"
	lines, _ := agentLedger(t, ledger.Opening{Agent: agent, Created: streamMade}, 1)
	conn, err := nats.Connect(rig.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request(subject.Ledger(agent), []byte(lines[0]), 10e9); err != nil {
		t.Fatal(err)
	}
	await(t, rig, "ledger = '"+agent+"'", 1)
	running.Stop(t)
	if !away.failed {
		t.Error("the database was never asked")
	}
}

// awayOnce fails the first query for heads.
type awayOnce struct {
	opledger.AuditRows
	failed bool
}

func (a *awayOnce) LedgerHeads(ctx context.Context, streamCreated time.Time) ([]store.LedgerHead, error) {
	if !a.failed {
		a.failed = true
		return nil, io.ErrUnexpectedEOF
	}
	return a.AuditRows.LedgerHeads(ctx, streamCreated)
}

// A stored hash that cannot be read ends the auditor: it would otherwise call every later entry of
// that agent invalid. The error names the agent and the message.
func TestAuditorRefusesAnUnreadableHash(t *testing.T) {
	rig := pipelinetest.New(t)
	a := &opledger.Auditor{Env: pipelinetest.Env(t, "exporter"), Broker: opledger.On(rig.Client), Rows: changedHead{rig.Store}}
	err := a.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), `agent "did:web:a.example", message 7: hash "ab" is not 64 lower-case`) {
		t.Errorf("the auditor ended with %v", err)
	}
}

// changedHead returns a head whose hash was changed.
type changedHead struct{ opledger.AuditRows }

func (changedHead) LedgerHeads(context.Context, time.Time) ([]store.LedgerHead, error) {
	return []store.LedgerHead{{AgentID: "did:web:a.example", Sequence: 7, Entries: 3, Seq: 2, Hash: "ab"}}, nil
}

// A repeated entry does no harm, in one batch or after a restart, and does not become the head.
// Another entry with its number is reported as a fork.
func TestRepeatsAndForksOfAgentsLedgers(t *testing.T) {
	rig := pipelinetest.New(t)
	const agent = "a"
	conn, err := nats.Connect(rig.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := conn.Request(subject.Ledger(agent), []byte(line), 10e9); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines, _ := agentLedger(t, ledger.Opening{Agent: agent, Created: streamMade}, 4)
	fork := forged(t, lines[1], lines[2])
	send(lines[0], lines[1], lines[1], lines[2], fork, lines[0], lines[3])
	running := auditor(t, rig)
	await(t, rig, "ledger = 'a'", 7)
	running.Stop(t)
	send(lines[2], fork, strings.Replace(lines[2], `{"n":2}`, `{"n":9}`, 1), lines[4])
	running = auditor(t, rig)
	await(t, rig, "ledger = 'a'", 11)
	running.Stop(t)
	for where, want := range map[string]uint64{
		"fault = ''":                               5,
		"startsWith(fault, 'repeat: seq 1 ')":      1,
		"startsWith(fault, 'repeat: seq 0 ')":      1,
		"startsWith(fault, 'repeat: seq 2 ')":      1,
		"startsWith(fault, 'fork: seq 2 exists ')": 3, // one claims the hash of the existing entry
	} {
		if got := rig.Number(t, "SELECT count() FROM visible_ledger WHERE ledger = 'a' AND "+where); got != want {
			t.Errorf("%s: %d entries, want %d", where, got, want)
		}
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil || state.Messages != 3 {
		t.Errorf("%d alerts, error %v, want 3", state.Messages, err)
	}
}

// forged returns an entry with other data after the given one.
func forged(t *testing.T, before, line string) string {
	t.Helper()
	first, err := ledger.ParseLine([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	chain := ledger.Resume(first)
	entry, err := chain.Append(ledger.Claim, []byte(`{"n":"another"}`))
	if err != nil || strings.Contains(line, entry.Hash.String()) {
		t.Fatal(line, err)
	}
	return strings.TrimSuffix(string(entry.AppendLine(nil)), "\n")
}
