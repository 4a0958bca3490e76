package opledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// AuditRows stores verified entries as rows, and returns how far each ledger was read
// (store.Store).
type AuditRows interface {
	Rows
	LedgerHeads(ctx context.Context, streamCreated time.Time) ([]store.LedgerHead, error)
	LedgerEntriesAt(ctx context.Context, places []store.LedgerPlace) ([]store.HeldEntry, error)
}

// AuditBroker is the auditor's broker.
type AuditBroker interface {
	Broker
	PublishAlerts(ctx context.Context, alerts []wire.Alert) error
}

// Auditor verifies agents' own ledgers as their entries arrive, each against the entry before it.
// It keeps every entry, with its fault where it is invalid. The chain of a ledger continues after
// its newest valid entry.
type Auditor struct {
	Env    *service.Env
	Broker AuditBroker
	Rows   AuditRows

	chains map[string]ledger.Chain // by agent
	stored map[string]uint64       // by agent: the highest sequence that had a row when the stream was opened
	source Source
	inbox  []stream.Message
	faults prometheus.Counter

	progress progress
}

// Run verifies until ctx ends.
func (a *Auditor) Run(ctx context.Context) (err error) {
	a.faults = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "plumbline_ledger_faults_total",
		Help: "Entries of agents' ledgers that fail verification.",
	})
	if err := a.Env.Metrics.Register(a.faults); err != nil {
		return fmt.Errorf("metrics of ledgers: %w", err)
	}
	work, stop := a.Env.Drain(ctx)
	defer stop()
	if err := a.Env.Retry.Do(ctx, "open agents' ledgers", func() error { return a.open(ctx) }); err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer a.source.Close()
	for ctx.Err() == nil {
		if a.inbox, err = fetch(ctx, a.Env, "fetch entries of agents' ledgers", a.source, a.inbox, batchMessages); err != nil {
			return service.UnlessEnded(ctx, err)
		}
		for rest := a.inbox; len(rest) > 0; {
			batch := narrow(rest)
			if err := a.audit(work, batch); err != nil {
				return err
			}
			rest = rest[len(batch):]
		}
	}
	return nil
}

// narrow returns the first messages, whose sequences lie within batchMessages. Messages between them
// may have been deleted, so fewer than batchMessages messages can be further apart.
func narrow(messages []stream.Message) []stream.Message {
	n := sort.Search(len(messages), func(i int) bool { return messages[i].Sequence-messages[0].Sequence >= batchMessages })
	return messages[:n]
}

// open reads how far each ledger is stored, and starts reading where rows may be missing. A crash may
// have left a part of a batch: on a cluster, one shard can refuse the rows that another has stored.
// The rows of one agent are on one shard, and are stored in their order. All rows of earlier batches
// are stored, and the sequences of a batch lie within batchMessages (narrow).
func (a *Auditor) open(ctx context.Context) error {
	state, err := a.Broker.StreamState(ctx, stream.AgentLedger)
	if err != nil {
		return err
	}
	heads, err := a.Rows.LedgerHeads(ctx, state.Created)
	if err != nil {
		return err
	}
	a.chains, a.stored = make(map[string]ledger.Chain, len(heads)), make(map[string]uint64, len(heads))
	var newest uint64
	for _, head := range heads {
		a.stored[head.AgentID] = head.Sequence
		newest = max(newest, head.Sequence)
		if head.Entries == 0 {
			continue
		}
		hash, err := ledger.ParseHash(head.Hash)
		if err != nil {
			return service.Permanent(fmt.Errorf("table ledger, last entry of agent %q, message %d: %w: the row was changed; restore it, or run plumbline check --deep", head.AgentID, head.Sequence, err))
		}
		a.chains[head.AgentID] = ledger.Resume(&ledger.Entry{Seq: head.Seq, Hash: hash})
	}
	certain := Position{state.Created, newest - min(newest, batchMessages)}
	a.source, err = openReader(ctx, a.Broker, stream.AgentLedger, certain, &a.progress)
	return err
}

// audit verifies a batch of messages, publishes alerts on faults, and stores the rows. The rows are
// the checkpoint, so they come last. It skips the messages whose rows were stored before.
func (a *Auditor) audit(ctx context.Context, batch []stream.Message) error {
	var rows []store.LedgerEntry
	var doubtful []doubt
	for i := range batch {
		m := &batch[i]
		agent, err := subject.ParseLedger(m.Subject)
		if err != nil {
			a.Env.Log.Error("message is not an entry of an agent's ledger, skipped", "sequence", m.Sequence, "error", err)
			continue
		}
		if m.Sequence <= a.stored[agent] {
			continue
		}
		row, entry, behind := a.judge(agent, m)
		if entry != nil && row.Fault != "" {
			doubtful = append(doubtful, doubt{row: len(rows), entry: entry, behind: behind})
		}
		rows = append(rows, row)
	}
	if err := a.Env.Retry.Do(ctx, "look up repeated ledger entries", func() error { return a.explain(ctx, rows, doubtful) }); err != nil {
		return err
	}
	alerts, err := a.alerts(rows)
	if err != nil {
		return err
	}
	if len(alerts) > 0 {
		if err := a.Env.Retry.Do(ctx, "publish alerts on ledgers", func() error { return a.Broker.PublishAlerts(ctx, alerts) }); err != nil {
			return err
		}
	}
	if err := a.Env.Retry.Do(ctx, "insert entries of agents' ledgers", func() error { return a.Rows.InsertLedger(ctx, rows) }); err != nil {
		return err
	}
	a.progress.stored(batch)
	return nil
}

// alerts returns an alert on each invalid entry. A valid entry that was delivered again gets
// none.
func (a *Auditor) alerts(rows []store.LedgerEntry) (alerts []wire.Alert, err error) {
	for i := range rows {
		if rows[i].Fault == "" || strings.HasPrefix(rows[i].Fault, FaultRepeat+":") {
			continue
		}
		a.faults.Inc()
		alert, err := faultAlert(&rows[i])
		if err != nil {
			return nil, err
		}
		alerts = append(alerts, alert)
	}
	return alerts, nil
}

// judge checks one entry against the agent's chain. entry is nil if the message could not be
// parsed. behind reports that the chain already has the entry's number.
func (a *Auditor) judge(agent string, m *stream.Message) (row store.LedgerEntry, entry *ledger.Entry, behind bool) {
	row = store.LedgerEntry{Ledger: agent, StreamCreated: a.source.StreamCreated(), Sequence: m.Sequence, At: m.Received}
	before := a.chains[agent]
	entry, chain, err := follow(before, m.Data)
	if err != nil {
		row.Data, row.Fault = string(m.Data), err.Error()
		return row, entry, entry != nil && 0 < entry.Seq && entry.Seq < before.Len()
	}
	a.chains[agent] = chain
	row.Seq, row.Type, row.Data, row.Hash = entry.Seq, string(entry.Type), string(entry.Data), entry.Hash.String()
	return row, entry, false
}

// follow parses the entry in a line and returns it with the chain that includes it. An entry that
// was parsed is returned with an error, too. A GENESIS after other entries begins the next file
// and must continue from the last of them.
func follow(chain ledger.Chain, line []byte) (*ledger.Entry, ledger.Chain, error) {
	entry, err := ledger.ParseEntry(line) // only the canonical form is kept
	if err != nil {
		return nil, chain, fmt.Errorf("%s: %w", ledger.FaultForm, err)
	}
	before := chain
	if entry.Seq == 0 {
		chain = ledger.Chain{}
	}
	v := ledger.ResumeValidator(chain)
	if err := v.AddEntry(entry); err != nil {
		return entry, before, reason(err)
	}
	if before.Len() > 0 && entry.Seq == 0 {
		if err := v.Continues(&ledger.Summary{Last: before.Last()}); err != nil {
			return entry, before, reason(err)
		}
	}
	return entry, v.Chain(), nil
}

// reason returns a fault without its place in a file, since entries here are not in a file.
func reason(err error) error {
	var fault *ledger.Fault
	if errors.As(err, &fault) {
		return fmt.Errorf("%s: %s", fault.Kind, fault.Message)
	}
	return err
}

// LedgerBroken is the type of the finding on an invalid entry of a ledger.
const LedgerBroken = "LEDGER_BROKEN"

// faultAlert returns the alert on an invalid entry.
func faultAlert(row *store.LedgerEntry) (wire.Alert, error) {
	data, err := json.Marshal(struct {
		AgentID  string          `json:"agent_id"`
		Findings []schema.Remark `json:"findings"`
		Sequence uint64          `json:"sequence"`
	}{row.Ledger, []schema.Remark{{Type: LedgerBroken, Severity: schema.SeverityHigh, Description: row.Fault}}, row.Sequence})
	if err != nil {
		return wire.Alert{}, fmt.Errorf("alert on a ledger: %w", err)
	}
	id := FaultAlertID(row.Ledger, row.StreamCreated, row.Sequence)
	return wire.Alert{Kind: subject.AlertFinding, Agent: row.Ledger, ID: id, Data: data}, nil
}

// FaultAlertID returns the id of the alert on an entry of an agent's ledger. It is derived from
// the entry's place in the stream that was created at streamCreated.
func FaultAlertID(agentID string, streamCreated time.Time, sequence uint64) string {
	return schema.DigestOf(fmt.Appendf(nil, "ledger %q %d %d", agentID, streamCreated.UnixNano(), sequence)).String()
}

// What an entry that does not follow may be, in addition to the kinds of ledger.Fault.
const (
	FaultRepeat = "repeat" // a valid entry was delivered again: harmless
	FaultFork   = "fork"   // another valid entry has its number
)

// doubt is an entry that was parsed but does not follow the chain.
type doubt struct {
	row    int // index in the batch
	entry  *ledger.Entry
	behind bool // the chain already has its number
}

// explain determines for entries that do not follow whether they repeat a valid entry or fork the
// ledger.
func (a *Auditor) explain(ctx context.Context, rows []store.LedgerEntry, doubtful []doubt) error {
	if len(doubtful) == 0 {
		return nil
	}
	places := make([]store.LedgerPlace, len(doubtful))
	for i, d := range doubtful {
		places[i] = store.LedgerPlace{Ledger: rows[d.row].Ledger, Seq: d.entry.Seq}
	}
	stored, err := a.Rows.LedgerEntriesAt(ctx, places)
	if err != nil {
		return err
	}
	held := make(map[store.LedgerPlace][]store.HeldEntry, len(places))
	for _, e := range stored {
		place := store.LedgerPlace{Ledger: e.Ledger, Seq: e.Seq}
		held[place] = append(held[place], e)
	}
	done := 0
	for i, d := range doubtful {
		for ; done < d.row; done++ { // those of this batch are not stored yet
			if r := &rows[done]; r.Fault == "" {
				place := store.LedgerPlace{Ledger: r.Ledger, Seq: r.Seq}
				held[place] = append(held[place], store.HeldEntry{Type: r.Type, DataSHA256: schema.DigestOf([]byte(r.Data)).String(), Hash: r.Hash})
			}
		}
		if fault := d.among(held[places[i]]); fault != "" {
			rows[d.row].Fault = fault
		}
	}
	return nil
}

// among compares the entry with held, the valid entries that have its number, the newest last. It
// returns a fault of kind FaultRepeat or FaultFork, or "" where it is neither.
func (d *doubt) among(held []store.HeldEntry) string {
	e := d.entry
	for _, h := range held {
		if h.Hash == e.Hash.String() && h.Type == string(e.Type) && h.DataSHA256 == schema.DigestOf(e.Data).String() {
			return fmt.Sprintf("%s: seq %d exists already with the same contents", FaultRepeat, e.Seq)
		}
	}
	if !d.behind || len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: seq %d exists already with hash %s, this one has %s", FaultFork, e.Seq, held[len(held)-1].Hash, e.Hash)
}

// Backlog returns the backlog of agents' own ledgers: entries that are not rows yet.
func (a *Auditor) Backlog() service.Consumer {
	return a.progress.backlog("agent_ledgers", stream.AgentLedger, a.Broker)
}
