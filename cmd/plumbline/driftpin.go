package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

type driftPinCommand struct {
	readerFlags `embed:""`
	Agent       string   `arg:"" help:"The agent_id."`
	From        string   `placeholder:"TRACE_ID" help:"Pin the whole sessions under its card that begin with this trace or later, ten unless --sessions says how many."`
	Count       *int     `placeholder:"N" help:"Pin N traces, 1 to 100, from that of --from on, not whole sessions. A few traces of one session raise false alarms."`
	Sessions    *int     `placeholder:"N" help:"Pin the first N whole sessions under the card that begin with the trace of --from or later; without --from, the agent's first. Ten are a good baseline."`
	Traces      []string `placeholder:"TRACE_ID,…" help:"Pin exactly these traces, all under one card."`
	Card        string   `placeholder:"CARD_ID" help:"Only the traces under this card."`
	Pins        string   `type:"path" placeholder:"FILE" help:"File to write. Default: drift-pins.json in the data directory."`
	JSON        bool     `help:"Print one JSON object."`
}

// Help returns the examples.
func (*driftPinCommand) Help() string {
	return examples(
		"plumbline drift pin did:web:buyer.example --from tr-1018-5 --sessions 10",
		"plumbline drift pin did:web:buyer.example --sessions 10",
		"plumbline drift pin did:web:buyer.example --traces tr-1018-5,tr-1018-6,tr-1018-7",
	)
}

// pinned is the result of drift pin.
type pinned struct {
	AgentID    string        `json:"agent_id"`
	CardID     string        `json:"card_id"`
	BaselineID schema.Digest `json:"baseline_id"`
	TraceIDs   []string      `json:"trace_ids"`
	SessionIDs []string      `json:"session_ids"`
	File       string        `json:"file"`
}

// Run computes the baseline from stored traces and writes it to the file that the
// drift service reads at its start.
func (c *driftPinCommand) Run(ctx context.Context, con *console) error {
	switch {
	case c.Sessions != nil && (*c.Sessions < 1 || *c.Sessions > aapdrift.MaxSessions):
		return usagef("--sessions %d: want 1 to %d", *c.Sessions, aapdrift.MaxSessions)
	case c.Sessions != nil && len(c.Traces) > 0:
		return usagef("name the traces with --sessions or with --traces, not with both")
	case c.Count != nil && (c.Sessions != nil || c.From == ""):
		return usagef("--count %d counts traces from that of --from on: give --from, and not --sessions", *c.Count)
	case c.From != "" && len(c.Traces) > 0:
		return usagef("name the traces with --from or with --traces, not with both")
	case c.Sessions == nil && c.From == "" && len(c.Traces) == 0:
		return usagef("name the traces: --sessions N, --from TRACE_ID, both, or --traces TRACE_ID,TRACE_ID")
	case c.Count != nil && (*c.Count < 1 || *c.Count > aapdrift.MaxSustained):
		return usagef("--count %d: want 1 to %d", *c.Count, aapdrift.MaxSustained)
	case len(c.Traces) > aapdrift.MaxSustained:
		return usagef("--traces names %d: want at most %d", len(c.Traces), aapdrift.MaxSustained)
	}
	if c.From != "" && c.Sessions == nil && c.Count == nil {
		whole := aapdrift.DefaultSessions
		c.Sessions = &whole
	}
	return c.read(ctx, func(s *store.Store) error {
		chosen, err := c.find(ctx, s)
		if err != nil {
			return err
		}
		chosen.warn(con)
		return c.pin(ctx, chosen.traces, con)
	})
}

// find reads the named traces, in order of time.
func (c *driftPinCommand) find(ctx context.Context, s *store.Store) (*choice, error) {
	facts, err := factsOf(ctx, s, c.Agent)
	if err != nil {
		return nil, err
	}
	chosen := &choice{driftPinCommand: c, sessions: map[string]*pinnedSession{}}
	for stored, err := range s.AgentTraces(ctx, c.Agent, c.Card) {
		if err != nil {
			return nil, err
		}
		chosen.known = true
		if c.Sessions == nil && !chosen.wants(stored.TraceID, stored.CardID) {
			continue
		}
		sample, err := sampleOf(stored, facts)
		if err != nil {
			return nil, err
		}
		chosen.take(&sample)
	}
	return chosen, chosen.check()
}

// choice is what a pin takes of an agent's traces, which are offered in order of time.
type choice struct {
	*driftPinCommand
	known    bool // there are traces of the agent
	traces   []aapdrift.Sample
	sessions map[string]*pinnedSession // of a pin of sessions
	count    int                       // of them, how many are taken
	newest   time.Time                 // of the traces of the card that were offered
}

type pinnedSession struct {
	taken bool
	first string // its first trace
	last  time.Time
	ended bool // a trace marks its end
}

// take takes the trace if it is wanted.
func (c *choice) take(x *aapdrift.Sample) {
	if c.Sessions == nil || c.wantsSession(x) {
		c.traces = append(c.traces, *x)
	}
}

// wantsSession reports whether a trace belongs to one of the wanted sessions: they begin, in order of
// time, with the trace of --from or after it, under its card.
func (c *choice) wantsSession(x *aapdrift.Sample) bool {
	if len(c.traces) > 0 && x.CardID != c.traces[0].CardID {
		return false
	}
	session := c.sessions[x.Session]
	if session == nil {
		begun := c.From == "" || len(c.traces) > 0 || x.TraceID == c.From
		session = &pinnedSession{first: x.TraceID, taken: begun && c.count < *c.Sessions}
		if session.taken {
			c.count++
		}
		c.sessions[x.Session] = session
	}
	session.last, session.ended, c.newest = x.EventTime, session.ended || x.SessionEnd, x.EventTime
	return session.taken
}

// wants reports whether a trace is one of the named ones, given the traces before it.
func (c *choice) wants(traceID, cardID string) bool {
	switch {
	case c.From == "":
		return slices.Contains(c.driftPinCommand.Traces, traceID)
	case len(c.traces) == 0:
		return traceID == c.From
	}
	return len(c.traces) < *c.Count && cardID == c.traces[0].CardID
}

// check returns an error if the traces found are not the ones wanted.
func (c *choice) check() error {
	if !c.known {
		return fmt.Errorf("%w: there are no traces of agent %q%s (of tenant %s). To list the agents, run: plumbline sql 'SELECT agent_id, traces FROM agents_now'",
			errNothing, c.Agent, underCard(c.Card), c.Tenant)
	}
	found := map[string]bool{}
	for _, x := range c.traces {
		if x.CardID != c.traces[0].CardID {
			return usagef("the traces are under several cards, such as %s and %s: name one with --card", c.traces[0].CardID, x.CardID)
		}
		found[x.TraceID] = true
	}
	for _, id := range append(slices.Clone(c.driftPinCommand.Traces), c.From) {
		if id != "" && !found[id] {
			return c.missing(id)
		}
	}
	switch {
	case c.Sessions != nil && c.count < *c.Sessions:
		where := choose(c.From == "", "", fmt.Sprintf(" that begin with trace %q or later", c.From))
		return fmt.Errorf("%w: agent %q has %d sessions%s%s, not %d: give --sessions %d%s",
			errNothing, c.Agent, c.count, underCard(c.traces[0].CardID), where, *c.Sessions, c.count, choose(c.From == "", "", ", or begin earlier"))
	case c.Count != nil && len(c.traces) < *c.Count:
		return fmt.Errorf("%w: from %q on there are %d traces under card %s, not %d: give --count %d, or begin earlier",
			errNothing, c.From, len(c.traces), c.traces[0].CardID, *c.Count, len(c.traces))
	}
	return nil
}

// missing returns the error for a trace that was not found, or that is not the first of its session.
func (c *choice) missing(traceID string) error {
	return fmt.Errorf("%w: agent %q has no trace %q%s (of tenant %s)%s", errNothing, c.Agent, traceID, underCard(c.Card), c.Tenant,
		choose(c.Sessions == nil, "", " with which a session begins: give the first trace of a session"))
}

// running returns the taken sessions that may go on, sorted: no trace marks their end, and their last
// trace is not so much older than the newest that drift would take them for complete.
func (c *choice) running() (ids []string) {
	for id, session := range c.sessions {
		if session.taken && !session.ended && c.newest.Sub(session.last) <= aapdrift.Idle {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// warn says what is weak about the baseline.
func (c *choice) warn(con *console) {
	if running := c.running(); len(running) > 0 {
		fmt.Fprintf(con.errs, "plumbline: %d of these sessions may go on, such as %s; their later traces are not part of the baseline\n",
			len(running), printable(running[0]))
	}
	if len(c.traces) < aapdrift.DefaultLeastTraces {
		fmt.Fprintf(con.errs, "plumbline: a baseline of %d traces is small, and false alarms are more likely; without a pin, drift waits for %d sessions with at least %d traces\n",
			len(c.traces), aapdrift.DefaultSessions, aapdrift.DefaultLeastTraces)
	}
}

func (c *driftPinCommand) pin(ctx context.Context, samples []aapdrift.Sample, con *console) error {
	path := cmp.Or(c.Pins, machine.DriftPins(c.dataDir(ctx)))
	pins, err := drift.ReadPins(path)
	if errors.Is(err, fs.ErrNotExist) {
		pins, err = drift.Pins{}, nil
	}
	if err != nil {
		return err
	}
	baseline := aapdrift.NewBaseline(samples)
	pins.Set(drift.Pin{AgentID: samples[0].AgentID, CardID: samples[0].CardID, PinnedAt: time.Now().UTC(), Baseline: baseline})
	if err := pins.Write(path); err != nil {
		return err
	}
	answer := pinned{AgentID: samples[0].AgentID, CardID: samples[0].CardID, BaselineID: baseline.ID, SessionIDs: baseline.Sessions, File: path}
	for _, x := range samples {
		answer.TraceIDs = append(answer.TraceIDs, x.TraceID)
	}
	if c.JSON {
		return writeJSON(con.out, answer)
	}
	_, err = fmt.Fprintf(con.out, "Pinned %s under card %s to %d traces of %d sessions: baseline %s in %s.\n"+
		"Drift uses it from its next start in mode pinned: plumbline up --drift-mode pinned, or the drift service with --mode pinned --pins %s.\n",
		printable(answer.AgentID), printable(answer.CardID), len(answer.TraceIDs), len(answer.SessionIDs), short(answer.BaselineID), path, path)
	return err
}
