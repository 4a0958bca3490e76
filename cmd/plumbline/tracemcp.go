package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/mcp"
)

type traceMCPCommand struct {
	File    string `arg:"" help:"Transcript (gzipped or not): a line for each JSON-RPC message, of both directions, as TIME MESSAGE with an RFC 3339 time; - is standard input."`
	Agent   string `required:"" help:"agent_id of the traces."`
	Card    string `required:"" help:"card_id of the traces."`
	Session string `help:"session_id of the traces; without it they belong to the agent's session of the day."`
	Server  string `help:"Name of the MCP server; default: what it calls itself in the transcript."`
}

// Run prints a trace for each tools/call of an MCP transcript, one per line, for
// plumbline send. An unreadable line ends it; the error has the line's number.
func (c *traceMCPCommand) Run(ctx context.Context, con *console) error {
	in, err := openInput(ctx, c.File, con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	session := mcp.Session{AgentID: c.Agent, CardID: c.Card, SessionID: c.Session, Server: c.Server}
	lines := newLineReader(in)
	for {
		text, readErr := lines.next()
		if len(text) > 0 {
			if err := c.message(con.out, &session, text); err != nil {
				return fmt.Errorf("%s, line %d: %w", nameOf(c.File), lines.number, err)
			}
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return fmt.Errorf("read %s: %w", nameOf(c.File), readErr)
		}
	}
	traces, err := session.End()
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf(c.File), err)
	}
	for _, raw := range traces {
		if err := printTrace(con.out, raw); err != nil {
			return err
		}
	}
	return nil
}

func (c *traceMCPCommand) message(out io.Writer, session *mcp.Session, line []byte) error {
	stamp, message, _ := bytes.Cut(line, []byte(" "))
	at, err := schema.ParseTime(string(stamp))
	if err != nil {
		return fmt.Errorf("want TIME MESSAGE, with a time such as 2026-01-31T12:00:00Z: %w", err)
	}
	raw, err := session.Message(at, message)
	if err != nil || raw == nil {
		return err
	}
	return printTrace(out, raw)
}

func printTrace(out io.Writer, raw []byte) error {
	_, err := out.Write(append(raw, '\n'))
	return err
}
