package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/a2a"
)

type cardA2ACommands struct {
	Embed   cardEmbedCommand   `cmd:"" help:"Print an A2A agent card with a card, or the address of one, in its alignment block."`
	Extract cardExtractCommand `cmd:"" help:"Print the card that an A2A agent card holds, byte for byte as it was embedded."`
}

// maxAgentCardBytes bounds an A2A agent card with a card inside.
const maxAgentCardBytes = 4 << 20

type cardEmbedCommand struct {
	AgentCard string `arg:"" help:"File of the A2A agent card; - is standard input."`
	Card      string `placeholder:"FILE" help:"File of the Alignment Card to embed."`
	CardURL   string `name:"card-url" placeholder:"URL" help:"Where the agent's current Alignment Card is served."`
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
		return fmt.Errorf("%s holds no card, but the address of one: fetch %s", nameOf(c.AgentCard), printable(alignment.URL))
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
