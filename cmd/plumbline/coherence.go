package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/schema"
)

type coherenceCommands struct {
	Check coherenceCheckCommand `cmd:"" help:"Check whether agents can work together by the values that their cards declare; exits 1 when not."`
}

type coherenceCheckCommand struct {
	ingestFlags `embed:""`
	Cards       []string  `arg:"" name:"card" help:"Two or more of: the file of a card; a card_id or agent_id that a running up knows. Of two, the first is taken for the initiator; more are a fleet."`
	Values      []string  `placeholder:"VALUE" help:"What the task requires; without it, every value that either declares."`
	Now         time.Time `placeholder:"TIME" help:"Time at which the cards must be in force (RFC 3339); default now."`
	JSON        bool      `help:"Print one JSON object."`

	MinCoherence float64 `default:"0.70" help:"Least score with which they may proceed (AAP section 8.3)."`
	Methodology  string  `placeholder:"TEXT" help:"How a --min-coherence that is not the published one was derived."`
}

// pairView is the coherence of two cards.
type pairView struct {
	Initiator cardView `json:"initiator"`
	Responder cardView `json:"responder"`
	schema.Assessment
}

type cardView struct {
	AgentID string `json:"agent_id"`
	CardID  string `json:"card_id"`
}

// Run checks; the exit code reports whether all agents can work together.
func (c *coherenceCheckCommand) Run(ctx context.Context, con *console) error {
	if len(c.Cards) < 2 {
		return usagef("give two cards or more: plumbline coherence check A B")
	}
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	parties, err := (&cardFinder{flags: &c.ingestFlags}).parties(ctx, c.Cards)
	if err != nil {
		return err
	}
	thresholds := aap.DefaultThresholds()
	thresholds.MinCoherence, thresholds.Methodology = c.MinCoherence, c.Methodology
	assessor, err := coherence.NewAssessor(thresholds)
	if err != nil {
		return usageError{err}
	}
	if len(parties) > 2 {
		return c.fleet(con.out, assessor, parties, now.UTC())
	}
	return c.pair(con.out, assessor, parties[0], parties[1], now.UTC())
}

func (c *coherenceCheckCommand) pair(w io.Writer, assessor *coherence.Assessor, a, b coherence.Party, now time.Time) error {
	found := assessor.Check(a, b, coherence.Task{Required: c.Values}, now)
	v := &pairView{Initiator: cardView{a.AgentID, a.CardID}, Responder: cardView{b.AgentID, b.CardID}, Assessment: found}
	show := v.write
	if c.JSON {
		show = func(w io.Writer) error { return writeJSON(w, v) }
	}
	return told(show(w), found.Proceed)
}

func (c *coherenceCheckCommand) fleet(w io.Writer, assessor *coherence.Assessor, parties []coherence.Party, now time.Time) error {
	members := make([]coherence.Member, len(parties))
	for i, party := range parties {
		members[i] = coherence.Member{ID: party.AgentID, Party: party}
	}
	found, err := assessor.Fleet(members, c.Values, now)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		return told(writeJSON(w, &found), found.Compatible)
	}
	return told(writeFleet(w, &found), found.Compatible)
}

// told returns the error of a command that has printed its findings.
func told(err error, good bool) error {
	if err == nil && !good {
		return errFoundBad
	}
	return err
}

// write writes the view for people.
func (v *pairView) write(w io.Writer) error {
	rows := [][]any{
		{"initiator", v.Initiator.AgentID + " (card " + v.Initiator.CardID + ")"},
		{"responder", v.Responder.AgentID + " (card " + v.Responder.CardID + ")"},
		{"score", fmt.Sprintf("%g, of at least %g", v.Score, v.Metadata.MinCoherence)},
		{"required", "by " + string(v.Metadata.RequiredFrom)},
		{"matched", list(v.Alignment.Matched)},
		{"unmatched", list(v.Alignment.Unmatched)},
	}
	for _, conflict := range v.Alignment.Conflicts {
		rows = append(rows, []any{"conflict", conflict.Description + resolvedBy(conflict.ResolvedBy)})
	}
	for _, s := range v.ResolutionSteps {
		rows = append(rows, []any{"step", fmt.Sprintf("%s, %s of the %s: %s: %s", s.Step, s.Subject, s.Side, s.Outcome, s.Reason)})
	}
	for _, reason := range v.Reasons {
		rows = append(rows, []any{"reason", reasonText(reason)})
	}
	if p := v.ProposedResolution; p != nil {
		rows = append(rows, []any{"proposed", fmt.Sprintf("%s: %s", p.Type, p.Reason)})
		if p.Alternative != nil {
			rows = append(rows, []any{"alternative", fmt.Sprintf("%s: %s", p.Alternative.Type, p.Alternative.Description)})
		}
	}
	for _, condition := range v.Conditions {
		rows = append(rows, []any{"condition", condition})
	}
	return writeRows(w, append(rows, []any{"compatible", v.Compatible}, []any{"proceed", v.Proceed}, []any{"not shown", relativeToDeclared}))
}

// relativeToDeclared is the limitation that applies to every result of the check (AAP section 10.1).
var relativeToDeclared = schema.Limitations()[3]

func writeFleet(w io.Writer, f *coherence.Fleet) error {
	rows := [][]any{
		{"agents", f.AgentCount},
		{"score", fmt.Sprintf("%g, mean of %d pairs from %g to %g", f.Score, f.PairCount, f.MinPairScore, f.MaxPairScore)},
		{"weakest pair", fmt.Sprintf("%s and %s: %g", f.WeakestPair.A, f.WeakestPair.B, f.WeakestPair.Score)},
	}
	for _, pair := range f.Pairs {
		if !pair.Result.Compatible {
			rows = append(rows, []any{"not compatible", pair.A + " and " + pair.B + ": " + reasonsText(pair.Result.Reasons)})
		}
	}
	for _, o := range f.Outliers {
		rows = append(rows, []any{"outlier", fmt.Sprintf("%s: mean score %g, of the fleet %g; conflicts: %s", o.AgentID, o.AgentMean, o.FleetMean, list(o.PrimaryConflicts))})
	}
	for _, cluster := range f.Clusters {
		rows = append(rows, []any{"cluster", fmt.Sprintf("%s: share %s", list(cluster.AgentIDs), list(cluster.SharedValues))})
	}
	return writeRows(w, append(rows, []any{"compatible", f.Compatible}, []any{"not shown", relativeToDeclared}))
}

func reasonsText(reasons []schema.Reason) string {
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = reasonText(reason)
	}
	return strings.Join(texts, "; ")
}

func reasonText(r schema.Reason) string {
	if r.Side == "" {
		return r.Code + ": " + r.Description
	}
	return fmt.Sprintf("%s of the %s: %s", r.Code, r.Side, r.Description)
}

func resolvedBy(kind schema.ResolutionKind) string {
	if kind == "" {
		return " (it stands)"
	}
	return fmt.Sprintf(" (resolved: %s)", kind)
}

func list(values []string) string {
	if len(values) == 0 {
		return "-"
	}
	return strings.Join(values, ", ")
}

// writeRows writes a table of names and values.
func writeRows(w io.Writer, rows [][]any) error {
	t := newTable(w)
	for _, row := range rows {
		if err := t.row(row...); err != nil {
			return err
		}
	}
	return t.Flush()
}
