package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

type coherenceCommands struct {
	Check coherenceCheckCommand `cmd:"" help:"Check whether agents can work together by the values that their cards declare. Exits with 1 if they cannot."`
}

type coherenceCheckCommand struct {
	ingestFlags `embed:""`
	Cards       []string  `arg:"" name:"card" help:"Two or more of: the file of a card; a card_id or agent_id that a running up knows. Of two cards, the first is the initiator's; more than two are a fleet."`
	Values      []string  `placeholder:"VALUE" help:"Value that the task requires. Default: every value that either card declares."`
	Now         time.Time `placeholder:"TIME" help:"Time at which the cards must be in force (RFC 3339). Default: now."`
	JSON        bool      `help:"Print one JSON object."`

	MinCoherence float64 `default:"0.70" help:"Minimum score to proceed (AAP section 8.3)."`
	Methodology  string  `placeholder:"TEXT" help:"How --min-coherence was derived, if it is not the published one."`
}

// Help returns the examples.
func (*coherenceCheckCommand) Help() string {
	return examples(
		"plumbline coherence check buyer.json seller.json",
		"plumbline coherence check did:web:buyer.example did:web:seller.example --values transparency,privacy",
	)
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
	now := cmp.Or(c.Now, time.Now()).UTC()
	if len(parties) > 2 {
		return c.fleet(con.out, assessor, parties, now)
	}
	return c.pair(con.out, assessor, parties[0], parties[1], now)
}

func (c *coherenceCheckCommand) pair(w io.Writer, assessor *coherence.Assessor, a, b coherence.Party, now time.Time) error {
	result := assessor.Check(a, b, coherence.Task{Required: c.Values}, now)
	v := &pairView{Initiator: cardView{a.AgentID, a.CardID}, Responder: cardView{b.AgentID, b.CardID}, Assessment: result}
	show := v.write
	if c.JSON {
		show = func(w io.Writer) error { return writeJSON(w, v) }
	}
	return found(show(w), result.Proceed)
}

func (c *coherenceCheckCommand) fleet(w io.Writer, assessor *coherence.Assessor, parties []coherence.Party, now time.Time) error {
	members := make([]coherence.Member, len(parties))
	for i, party := range parties {
		members[i] = coherence.Member{ID: party.AgentID, Party: party}
	}
	result, err := assessor.Fleet(members, c.Values, now)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		return found(writeJSON(w, &result), result.Compatible)
	}
	return found(writeFleet(w, &result), result.Compatible)
}

func (v *pairView) write(w io.Writer) error {
	rows := [][]any{
		{"initiator", v.Initiator.AgentID + " (card " + v.Initiator.CardID + ")"},
		{"responder", v.Responder.AgentID + " (card " + v.Responder.CardID + ")"},
		{"score", fmt.Sprintf("%g, minimum %g", v.Score, v.Metadata.MinCoherence)},
		{"required", "by " + string(v.Metadata.RequiredFrom)},
		{"matched", list(v.Alignment.Matched)},
		{"unmatched", list(v.Alignment.Unmatched)},
	}
	for _, conflict := range v.Alignment.Conflicts {
		resolved := " (not resolved)"
		if conflict.ResolvedBy != "" {
			resolved = fmt.Sprintf(" (resolved: %s)", conflict.ResolvedBy)
		}
		rows = append(rows, []any{"conflict", conflict.Description + resolved})
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
			var reasons []string
			for _, reason := range pair.Result.Reasons {
				reasons = append(reasons, reasonText(reason))
			}
			rows = append(rows, []any{"not compatible", pair.A + " and " + pair.B + ": " + strings.Join(reasons, "; ")})
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

func reasonText(r schema.Reason) string {
	if r.Side == "" {
		return r.Code + ": " + r.Description
	}
	return fmt.Sprintf("%s of the %s: %s", r.Code, r.Side, r.Description)
}

func list(values []string) string {
	if len(values) == 0 {
		return "-"
	}
	return strings.Join(values, ", ")
}

// cardFinder finds cards in files and in the registry of an ingest. It looks for the
// ingest only at the first card that is not in a file.
type cardFinder struct {
	flags  *ingestFlags
	ingest *client.Publisher
}

// parties finds the card of each argument. If one cannot be found, the
// error wraps errNothing.
func (f *cardFinder) parties(ctx context.Context, names []string) ([]coherence.Party, error) {
	parties := make([]coherence.Party, len(names))
	for i, name := range names {
		find := fromFile
		if _, err := os.Stat(name); err != nil { // an id can contain characters that a file name cannot
			find = f.registered
		}
		var err error
		if parties[i], err = find(ctx, name); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errNothing, name, tokenHint(err))
		}
	}
	return parties, nil
}

// fromFile reads a card that no registry has examined. A card whose signature does not match
// its own keys is an error.
func fromFile(ctx context.Context, path string) (party coherence.Party, err error) {
	raw, err := readObject(ctx, path, nil)
	if err != nil {
		return party, err
	}
	if party, err = partyOf(raw, time.Time{}); err != nil || party.Card.Signature == nil {
		return party, err
	}
	err = signature.Verify(party.Card.Raw, *party.Card.Signature, party.Card.Keys)
	if err != nil && !errors.Is(err, signature.ErrUnknownKey) { // the key may be that of an earlier card, or an issuer's
		return party, err
	}
	return party, nil
}

// registered finds the card with an id. If there is none, it finds the card of the agent with
// that id: the newest in force, else the newest, and the check then reports why that card
// does not count.
func (f *cardFinder) registered(ctx context.Context, id string) (party coherence.Party, err error) {
	if f.ingest == nil {
		if f.ingest, err = f.flags.publisher(ctx); err != nil {
			return party, err
		}
	}
	raw, err := f.ingest.Card(ctx, id)
	if err == nil {
		if party, err = partyOf(raw, time.Time{}); err != nil {
			return party, err
		}
		listed, err := f.ingest.Cards(ctx, party.AgentID) // the list has the revocation
		for _, card := range listed {
			if card.CardID == party.CardID {
				party.RevokedAt = card.RevokedAt
			}
		}
		return party, err
	}
	if problem, answered := errors.AsType[*client.Problem](err); !answered || problem.Code != http.StatusNotFound {
		return party, err
	}
	listed, err := f.ingest.Cards(ctx, id)
	if err != nil {
		return party, err
	}
	if len(listed) == 0 {
		return party, errors.New("there is no such file, no registered card with this id, and no agent with this id that has registered a card")
	}
	card := listed[max(0, slices.IndexFunc(listed, func(l client.ListedCard) bool { return l.State == client.CardInForce }))]
	if raw, err = f.ingest.Card(ctx, card.CardID); err != nil {
		return party, err
	}
	return partyOf(raw, card.RevokedAt)
}

func partyOf(raw []byte, revoked time.Time) (coherence.Party, error) {
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return coherence.Party{}, err
	}
	return coherence.Party{Card: card, CardID: card.CardID, AgentID: card.AgentID, RevokedAt: revoked}, nil
}
