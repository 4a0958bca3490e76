package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/message"
)

type messageCommands struct {
	Sign   messageSignCommand   `cmd:"" help:"Sign a message to an agent, on behalf of the token's owner. A running ingest signs it."`
	Verify messageVerifyCommand `cmd:"" help:"Verify a signed message, by the ingest that signed it. Exits with 0 if it is authentic and accepted. This receives the message: unless the agent's mode is off, it cannot be received again."`
}

type messageSignCommand struct {
	ingestFlags `embed:""`
	Agent       string   `required:"" help:"Agent that the message is for."`
	Session     string   `required:"" help:"Session in which the message is valid."`
	Intents     []string `placeholder:"CLASS" help:"Action classes that it permits: read, write, send, exec, trade. Default: inferred from the text."`
	Approves    string   `placeholder:"ID" help:"Id of another agent's message that it approves."`
	Text        string   `arg:"" optional:"" help:"The text. Default: standard input."`
}

// Help returns the examples.
func (*messageSignCommand) Help() string {
	return examples("plumbline message sign --agent did:web:shop.example --session sess-1 --intents read 'What is new?' > m.json")
}

// maxTextInput is one byte more than a message may have; ingest then reports the limit.
const maxTextInput = message.MaxTextBytes + 1

// Run prints the envelope with the wrapped text.
func (c *messageSignCommand) Run(ctx context.Context, con *console) error {
	q := client.SignRequest{AgentID: c.Agent, SessionID: c.Session, Text: c.Text, Approves: c.Approves}
	if c.Text == "" {
		text, err := io.ReadAll(io.LimitReader(con.in, maxTextInput))
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		q.Text = string(text)
	}
	if len(c.Intents) > 0 {
		q.Intents = &c.Intents
	}
	gateway, err := c.gateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.Close()
	signed, err := gateway.Sign(ctx, q)
	if err != nil {
		return fmt.Errorf("sign a message: %w", tokenHint(err))
	}
	if signed.Reason != "" {
		fmt.Fprintf(con.errs, "The agent will not accept this message as it is (%s): %s\n", signed.Reason, printable(signed.Detail))
	}
	return writeJSON(con.out, signed)
}

// gateway returns the client for messages of the ingest that the flags name.
func (f *ingestFlags) gateway(ctx context.Context) (*client.HTTP, error) {
	at, err := f.publisher(ctx)
	if err != nil {
		return nil, err
	}
	gateway, err := client.NewHTTP(client.HTTPConfig{URL: at.URL, Token: at.Token})
	if err != nil {
		return nil, usageError{err}
	}
	return gateway, nil
}

type messageVerifyCommand struct {
	ingestFlags `embed:""`
	Agent       string `help:"Agent that receives it. Default: the one that it names."`
	Session     string `help:"Session in which it is received. Default: the one that it names."`
	File        string `arg:"" optional:"" help:"Output of message sign. Default: standard input."`
	JSON        bool   `help:"Print the answer as JSON."`
}

// Help returns the examples.
func (*messageVerifyCommand) Help() string {
	return examples(
		"plumbline message verify m.json",
		"plumbline message verify --agent did:web:shop.example --session sess-1 < m.json",
	)
}

func (c *messageVerifyCommand) Run(ctx context.Context, con *console) error {
	in := con.in
	if c.File != "" {
		file, err := openAny(ctx, c.File, in)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	signed := new(client.SignedMessage)
	if err := json.NewDecoder(io.LimitReader(in, maxLineBytes)).Decode(signed); err != nil {
		return fmt.Errorf("%w: want the output of message sign: %w", errNothing, err)
	}
	gateway, err := c.gateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.Close()
	runtime := client.Runtime{HTTP: gateway, AgentID: cmp.Or(c.Agent, signed.AgentID), SessionID: cmp.Or(c.Session, signed.SessionID)}
	received, err := runtime.Receive(ctx, signed.Wrapped, &signed.Envelope)
	var rejected *client.Rejected
	if errors.As(err, &rejected) {
		received = rejected.Answer
	} else if err != nil {
		return fmt.Errorf("verify a message: %w", tokenHint(err))
	}
	return found(c.show(con.out, received), received.Authenticated && received.Outcome == message.Accepted)
}

func (c *messageVerifyCommand) show(w io.Writer, v *client.Received) error {
	if c.JSON {
		return writeJSON(w, v)
	}
	rows := [][]any{{"outcome", string(v.Outcome)}, {"authenticated", v.Authenticated}}
	if v.Reason != "" {
		rows = append(rows, []any{"reason", v.Reason + ": " + v.Detail})
	}
	if v.Outcome == message.Accepted {
		rows = append(rows, []any{"mode", string(v.Mode)}, []any{"from", string(v.Source) + " " + v.Sender}, []any{"permits", v.Intents}, []any{"text", v.Text})
	}
	return writeRows(w, rows)
}
