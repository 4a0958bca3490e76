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
	From        string   `placeholder:"TRACE_ID" help:"Pin this trace and those that follow it in time under the same card."`
	Count       int      `default:"10" help:"Number of traces that --from takes, 1 to 100."`
	Sessions    int      `placeholder:"N" help:"Pin the first N whole sessions under the card that begin with the trace of --from or later; without --from, the agent's first. Ten are a good baseline."`
	Traces      []string `placeholder:"TRACE_ID,…" help:"Pin exactly these traces, all under one card."`
	Card        string   `placeholder:"CARD_ID" help:"Only the traces under this card."`
	Pins        string   `type:"path" placeholder:"FILE" help:"File to write. Default: drift-pins.json in the data directory."`
	JSON        bool     `help:"Print one JSON object."`
}

// Help returns the examples.
func (*driftPinCommand) Help() string {
	return examples(
		"plumbline drift pin did:web:buyer.example --from tr-1018-5 --sessions 10",
		"plumbline drift pin did:web:buyer.example --from tr-1018-5",
		"plumbline drift pin did:web:buyer.example --traces tr-1018-5,tr-1018-6,tr-1018-7",
	)
}

// pinned is the result of drift pin.
type pinned struct {
	AgentID    string        `json:"agent_id"`
	CardID     string        `json:"card_id"`
	BaselineID schema.Digest `json:"baseline_id"`
	TraceIDs   []string      `json:"trace_ids"`
	File       string        `json:"file"`
}

// Run computes the baseline from stored traces and writes it to the file that the
// drift service reads at its start.
func (c *driftPinCommand) Run(ctx context.Context, con *console) error {
	switch {
	case c.Sessions < 0 || c.Sessions > aapdrift.MaxSessions:
		return usagef("--sessions %d: want 1 to %d", c.Sessions, aapdrift.MaxSessions)
	case c.Sessions > 0 && len(c.Traces) > 0:
		return usagef("name the traces with --sessions or with --traces, not with both")
	case c.Sessions == 0 && (c.From == "") == (len(c.Traces) == 0):
		return usagef("name the traces with --from TRACE_ID, --sessions or --traces, not with --from and --traces")
	case c.Count < 1 || c.Count > aapdrift.MaxSustained:
		return usagef("--count %d: want 1 to %d", c.Count, aapdrift.MaxSustained)
	case len(c.Traces) > aapdrift.MaxSustained:
		return usagef("--traces names %d: want at most %d", len(c.Traces), aapdrift.MaxSustained)
	}
	return c.read(ctx, func(s *store.Store) error {
		samples, err := c.samples(ctx, s)
		if err != nil {
			return err
		}
		return c.pin(ctx, samples, con)
	})
}

// samples reads the named traces, in order of time.
func (c *driftPinCommand) samples(ctx context.Context, s *store.Store) ([]aapdrift.Sample, error) {
	facts, err := factsOf(ctx, s, c.Agent)
	if err != nil {
		return nil, err
	}
	var chosen []aapdrift.Sample
	sessions := map[string]bool{} // of mode --sessions: whether the session is chosen
	for stored, err := range s.AgentTraces(ctx, c.Agent, c.Card) {
		if err != nil {
			return nil, err
		}
		if c.Sessions == 0 && !c.wants(stored, chosen) {
			continue
		}
		sample, err := sampleOf(stored, facts)
		if err != nil {
			return nil, err
		}
		if c.Sessions == 0 || c.wantsSession(&sample, sessions, chosen) {
			chosen = append(chosen, sample)
		}
	}
	return chosen, c.check(chosen)
}

// wantsSession reports whether a trace belongs to one of the wanted sessions: they begin, in order of
// time, with the trace of --from or after it, under its card. sessions has what was decided before.
func (c *driftPinCommand) wantsSession(x *aapdrift.Sample, sessions map[string]bool, chosen []aapdrift.Sample) bool {
	if wanted, seen := sessions[x.Session]; seen {
		return wanted && x.CardID == chosen[0].CardID
	}
	begun := c.From == "" || len(chosen) > 0 || x.TraceID == c.From
	same := len(chosen) == 0 || x.CardID == chosen[0].CardID
	count := 0
	for _, wanted := range sessions {
		if wanted {
			count++
		}
	}
	sessions[x.Session] = begun && same && count < c.Sessions
	return sessions[x.Session]
}

// wants reports whether a trace is one of the named ones, given the traces before it.
func (c *driftPinCommand) wants(t *store.StoredTrace, chosen []aapdrift.Sample) bool {
	switch {
	case c.From == "":
		return slices.Contains(c.Traces, t.TraceID)
	case len(chosen) == 0:
		return t.TraceID == c.From
	}
	return len(chosen) < c.Count && t.CardID == chosen[0].CardID
}

// check returns an error if the traces found are not the ones wanted.
func (c *driftPinCommand) check(chosen []aapdrift.Sample) error {
	found := map[string]bool{}
	for _, x := range chosen {
		if x.CardID != chosen[0].CardID {
			return usagef("the traces are under several cards, such as %s and %s: name one with --card", chosen[0].CardID, x.CardID)
		}
		found[x.TraceID] = true
	}
	for _, id := range append(slices.Clone(c.Traces), c.From) {
		if id != "" && !found[id] {
			return fmt.Errorf("%w: agent %q has no trace %q%s (of tenant %s)", errNothing, c.Agent, id, underCard(c.Card), c.Tenant)
		}
	}
	if c.Sessions > 0 {
		return c.checkSessions(chosen)
	}
	if c.From != "" && len(chosen) < c.Count {
		return fmt.Errorf("%w: from %q on there are %d traces under card %s, not %d: give --count %d, or begin earlier",
			errNothing, c.From, len(chosen), chosen[0].CardID, c.Count, len(chosen))
	}
	return nil
}

// checkSessions returns an error if there are fewer sessions than wanted.
func (c *driftPinCommand) checkSessions(chosen []aapdrift.Sample) error {
	sessions := map[string]bool{}
	for i := range chosen {
		sessions[chosen[i].Session] = true
	}
	if len(sessions) < c.Sessions {
		return fmt.Errorf("%w: agent %q has %d sessions%s that begin there, not %d: give --sessions %d, or begin earlier",
			errNothing, c.Agent, len(sessions), underCard(c.Card), c.Sessions, len(sessions))
	}
	return nil
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
	answer := pinned{AgentID: samples[0].AgentID, CardID: samples[0].CardID, BaselineID: baseline.ID, File: path}
	for _, x := range samples {
		answer.TraceIDs = append(answer.TraceIDs, x.TraceID)
	}
	if c.JSON {
		return writeJSON(con.out, answer)
	}
	_, err = fmt.Fprintf(con.out, "Pinned %s under card %s to %d traces: baseline %s in %s.\n"+
		"Drift uses it from its next start in mode pinned: plumbline up --drift-mode pinned, or the drift service with --mode pinned --pins %s.\n",
		printable(answer.AgentID), printable(answer.CardID), len(answer.TraceIDs), short(answer.BaselineID), path, path)
	return err
}
