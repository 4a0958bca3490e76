package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/a2a"
)

type cardCommands struct {
	New    cardNewCommand    `cmd:"" help:"Write a new card, from flags or from answers on a terminal."`
	Put    cardPutCommand    `cmd:"" help:"Register cards."`
	Get    cardGetCommand    `cmd:"" help:"Show a registered card."`
	LS     cardLSCommand     `cmd:"" name:"ls" help:"List registered cards."`
	Revoke cardRevokeCommand `cmd:"" help:"Revoke a card from now on. This cannot be undone."`
	Lint   cardLintCommand   `cmd:"" help:"Check cards for faults and for likely mistakes, offline."`
	A2A    cardA2ACommands   `cmd:"" name:"a2a" help:"Embed a card in an A2A agent card, offline."`
}

type cardGetCommand struct {
	ingestFlags `embed:""`
	ID          string `arg:"" help:"The card_id."`
	JSON        bool   `help:"Print the card as it was registered, byte for byte."`
}

// Help returns the examples.
func (*cardGetCommand) Help() string {
	return examples(
		"plumbline card get ac-buyer-1",
		"plumbline card get ac-buyer-1 --json > card.json",
	)
}

// Run shows one card; in text form with its current state.
func (c *cardGetCommand) Run(ctx context.Context, con *console) error {
	ingest, err := c.publisher(ctx)
	if err != nil {
		return err
	}
	raw, err := ingest.Card(ctx, c.ID)
	if err != nil {
		return hinted(err)
	}
	if c.JSON {
		_, err := con.out.Write(append(raw, '\n'))
		return err
	}
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return fmt.Errorf("read card %q: %w", c.ID, err)
	}
	listed, err := ingest.Cards(ctx, card.AgentID)
	if err != nil {
		return hinted(err)
	}
	text := card.Text()
	if i := slices.IndexFunc(listed, func(l client.ListedCard) bool { return l.CardID == card.CardID }); i >= 0 {
		text += "\nIn the registry it is " + stateText(&listed[i]) + ".\n"
	}
	_, err = io.WriteString(con.out, text)
	return err
}

func stateText(l *client.ListedCard) string {
	switch l.State {
	case client.CardRevoked:
		return fmt.Sprintf("revoked since %s: %s", cell(l.RevokedAt), printable(l.Reason))
	case client.CardExpired:
		return "expired"
	case client.CardNotYetIssued:
		return "not yet issued"
	}
	return "in force"
}

type cardLSCommand struct {
	ingestFlags `embed:""`
	Agent       string `placeholder:"AGENT" help:"Only the cards of this agent."`
	JSON        bool   `help:"Print one JSON object for each card."`
}

// Help returns the examples.
func (*cardLSCommand) Help() string {
	return examples(
		"plumbline card ls",
		"plumbline card ls --agent did:web:buyer.example --json",
	)
}

// Run lists cards, the newest of each agent first.
func (c *cardLSCommand) Run(ctx context.Context, con *console) error {
	ingest, err := c.publisher(ctx)
	if err != nil {
		return err
	}
	listed, err := ingest.Cards(ctx, c.Agent)
	if err != nil {
		return hinted(err)
	}
	if len(listed) == 0 {
		return fmt.Errorf("%w: no such card is registered; register one with: plumbline card put FILE", errNothing)
	}
	if c.JSON {
		return writeEach(con.out, listed)
	}
	t := newTable(con.out)
	t.row("CARD", "AGENT", "ISSUED", "EXPIRES", "STATE")
	for i := range listed {
		l := &listed[i]
		t.row(l.CardID, l.AgentID, l.IssuedAt, bound(l.ExpiresAt), stateText(l))
	}
	return t.Flush()
}

type cardRevokeCommand struct {
	ingestFlags `embed:""`
	ID          string `arg:"" help:"The card_id."`
	Reason      string `required:"" placeholder:"TEXT" help:"Reason of the revocation; everyone can read it."`
	JSON        bool   `help:"Print the revocation as one JSON object."`
}

// Help returns the examples.
func (*cardRevokeCommand) Help() string {
	return examples("plumbline card revoke ac-buyer-1 --reason 'the agent is retired'")
}

// Run revokes a card. An earlier revocation stays in force.
func (c *cardRevokeCommand) Run(ctx context.Context, con *console) error {
	if strings.TrimSpace(c.Reason) == "" {
		return usagef("--reason is empty: state why the card is revoked")
	}
	ingest, err := c.publisher(ctx)
	if err != nil {
		return err
	}
	revocation, created, err := ingest.Revoke(ctx, c.ID, c.Reason)
	if err != nil {
		return hinted(err)
	}
	if c.JSON {
		return writeJSON(con.out, revocation)
	}
	what := "revoked"
	if !created {
		what = "was revoked before"
	}
	_, err = fmt.Fprintf(con.out, "%s: card %s of agent %s, since %s: %s\n", what, printable(revocation.CardID),
		printable(revocation.AgentID), cell(revocation.RevokedAt), printable(revocation.Reason))
	return err
}

// hinted adds to an error about a card what the user can do.
func hinted(err error) error {
	if problem, refused := errors.AsType[*client.Problem](err); refused && problem.Code == http.StatusNotFound {
		return fmt.Errorf("%w: %w; list the registered cards with: plumbline card ls", errNothing, err)
	}
	return tokenHint(err)
}

// tokenHint adds to an error of ingest how to give the token that ingest requires.
func tokenHint(err error) error {
	if problem, refused := errors.AsType[*client.Problem](err); refused && problem.Code == http.StatusUnauthorized {
		if strings.HasPrefix(problem.Message, "no token") {
			return errors.New("this server requires a token: add --token TOKEN or set PLUMBLINE_TOKEN")
		}
		return fmt.Errorf("%w: give another one with --token TOKEN or PLUMBLINE_TOKEN", err)
	}
	return err
}

type cardA2ACommands struct {
	Embed   cardEmbedCommand   `cmd:"" help:"Print an A2A agent card with a card, or the address of one, in its alignment block."`
	Extract cardExtractCommand `cmd:"" help:"Print the card inside an A2A agent card, byte for byte as it was embedded."`
}

// maxAgentCardBytes bounds an A2A agent card with a card inside.
const maxAgentCardBytes = 4 << 20

type cardEmbedCommand struct {
	AgentCard string `arg:"" help:"File of the A2A agent card; - is standard input."`
	Card      string `placeholder:"FILE" help:"File of the Alignment Card to embed."`
	CardURL   string `name:"card-url" placeholder:"URL" help:"Where the agent's current Alignment Card is served."`
}

// Help returns the examples.
func (*cardEmbedCommand) Help() string {
	return examples(
		"plumbline card a2a embed agent-card.json --card card.json",
		"plumbline card a2a embed agent-card.json --card-url https://buyer.example/.well-known/alignment-card.json",
	)
}

// Run writes the block. Every other byte of the agent card stays unchanged.
func (c *cardEmbedCommand) Run(ctx context.Context, con *console) error {
	if c.Card == "" && c.CardURL == "" {
		return usagef("nothing to embed: give --card FILE, --card-url URL, or both")
	}
	whole, err := readObject(ctx, c.AgentCard, con.in)
	if err != nil {
		return err
	}
	if c.Card != "" {
		card, err := readObject(ctx, c.Card, con.in)
		if err != nil {
			return err
		}
		if whole, err = a2a.Embed(whole, card); err != nil {
			return fmt.Errorf("embed %s in %s: %w", nameOf(c.Card), nameOf(c.AgentCard), err)
		}
	}
	if c.CardURL != "" {
		if whole, err = a2a.Link(whole, c.CardURL); err != nil {
			return fmt.Errorf("link %s: %w", nameOf(c.AgentCard), err)
		}
	}
	if _, err = con.out.Write(append(whole, '\n')); err != nil {
		return err
	}
	if signed, err := a2a.Signed(whole); err == nil && signed {
		fmt.Fprintf(con.errs, "warning: %s is signed, and its signatures do not cover the block: sign what was printed\n", nameOf(c.AgentCard))
	}
	return nil
}

type cardExtractCommand struct {
	AgentCard string `arg:"" help:"File of the A2A agent card; - is standard input."`
}

// Help returns the examples.
func (*cardExtractCommand) Help() string {
	return examples("plumbline card a2a extract agent-card.json > card.json")
}

// Run prints the card. If the block contains only the address of a card, the error names
// the address.
func (c *cardExtractCommand) Run(ctx context.Context, con *console) error {
	whole, err := readObject(ctx, c.AgentCard, con.in)
	if err != nil {
		return err
	}
	alignment, err := a2a.Read(whole)
	var refusal *schema.Refusal
	switch {
	case errors.As(err, &refusal):
		return fmt.Errorf("%s: the card in its alignment block is not valid: %w", nameOf(c.AgentCard), err)
	case err != nil:
		return fmt.Errorf("%s: %w", nameOf(c.AgentCard), err)
	case alignment.Card == nil:
		return fmt.Errorf("%s contains the address of a card, not the card: fetch %s", nameOf(c.AgentCard), printable(alignment.URL))
	}
	_, err = con.out.Write(append(alignment.Card.Raw, '\n'))
	return err
}

// readObject reads a file that contains one JSON object.
func readObject(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	in, err := openInput(ctx, name, stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxAgentCardBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", nameOf(name), err)
	case len(raw) == 0:
		return nil, fmt.Errorf("%w: %s is empty", errNothing, nameOf(name))
	case len(raw) > maxAgentCardBytes:
		return nil, fmt.Errorf("read %s: it has more than %d bytes", nameOf(name), maxAgentCardBytes)
	}
	return raw, nil
}
