package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/message"
)

type messageCommands struct {
	Sign   messageSignCommand   `cmd:"" help:"Have a message to an agent signed by a running ingest, on behalf of the token's holder."`
	Verify messageVerifyCommand `cmd:"" help:"Have a signed message verified by the ingest that signed it; exits 0 where it is authentic and accepted. Like any receiver this takes the message, unless the agent's mode is off: nobody can take it after that."`
}

type messageSignCommand struct {
	ingestFlags `embed:""`
	Agent       string   `required:"" help:"The agent that it is for."`
	Session     string   `required:"" help:"The session in which it holds."`
	Intents     []string `placeholder:"CLASS" help:"What it permits: read, write, send, exec, trade; inferred from the text by default."`
	Approves    string   `placeholder:"ID" help:"The message of another agent that it approves."`
	Text        string   `arg:"" optional:"" help:"The text; standard input by default."`
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
		return fmt.Errorf("sign a message: %w", err)
	}
	if signed.Reason != "" {
		fmt.Fprintf(con.errs, "The agent will not take it as it is (%s): %s\n", signed.Reason, printable(signed.Detail))
	}
	return writeJSON(con.out, signed)
}

// gateway returns the client of the ingest that the flags name.
func (f *ingestFlags) gateway(ctx context.Context) (*client.HTTP, error) {
	at, err := f.client(ctx)
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
	Agent       string `help:"The agent that would take it; by default the one it says it is for."`
	Session     string `help:"The session in which it would; by default the one it says it is for."`
	File        string `arg:"" optional:"" help:"What message sign printed; standard input by default."`
	JSON        bool   `help:"Print the answer as JSON."`
}

// Run verifies the message.
func (c *messageVerifyCommand) Run(ctx context.Context, con *console) error {
	signed, err := c.read(ctx, con.in)
	if err != nil {
		return err
	}
	gateway, err := c.gateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.Close()
	runtime := client.Runtime{HTTP: gateway, AgentID: signed.AgentID, SessionID: signed.SessionID}
	if c.Agent != "" {
		runtime.AgentID = c.Agent
	}
	if c.Session != "" {
		runtime.SessionID = c.Session
	}
	received, err := runtime.Receive(ctx, signed.Wrapped, &signed.Envelope)
	var rejected *client.Rejected
	if errors.As(err, &rejected) {
		received = rejected.Answer
	} else if err != nil {
		return fmt.Errorf("verify a message: %w", err)
	}
	return told(c.show(con.out, received), received.Authenticated && received.Outcome == message.Accepted)
}

func (c *messageVerifyCommand) read(ctx context.Context, in io.Reader) (*client.SignedMessage, error) {
	if c.File != "" {
		file, err := openAny(ctx, c.File, in)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	signed := new(client.SignedMessage)
	if err := json.NewDecoder(io.LimitReader(in, maxLineBytes)).Decode(signed); err != nil {
		return nil, fmt.Errorf("%w: want what message sign printed: %w", errNothing, err)
	}
	return signed, nil
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
