package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

type natsConfigCommand struct {
	Dir         string   `arg:"" type:"path" placeholder:"DIR" help:"Directory for accounts.conf and the secrets; secrets that are there are kept."`
	Agent       []string `sep:"none" placeholder:"ID" help:"An agent that publishes on NATS itself; repeatable."`
	AgentFile   string   `placeholder:"FILE" help:"File of such agents, an id a line; - is standard input."`
	Ledgers     bool     `help:"Let agents publish entries of their own ledgers, too (docs/LEDGER.md)."`
	Handshakes  bool     `help:"Let agents send handshake messages, too (docs/HANDSHAKE.md)."`
	ObjectStore string   `placeholder:"NAME" help:"Let the exporter copy bundles to this object store (docs/DESTINATIONS.md)."`
	Account     string   `default:"PLUMBLINE" help:"Name of the account of streams and services (${default}); a tenant has one of its own. That of agents has _AGENTS behind it."`
	Passwords   bool     `help:"Log in by user and password instead of nkey."`
	JSON        bool     `help:"Print one JSON object a user."`
}

// Help returns the text below the usage.
func (*natsConfigCommand) Help() string {
	return `Writes the users of a NATS server of your own (docs/NATS.md). An agent may publish on its own subject, read its own inbox, and nothing
else; each service has what it needs. The server's configuration takes the file by: accounts { include "accounts.conf" }. Each user has a
file with the seed of its nkey, or its password, of mode 0600; nothing of it is printed. Run it again with all agents to add or remove some.`
}

// Run writes the configuration and prints the users.
func (c *natsConfigCommand) Run(ctx context.Context, con *console) error {
	agents, err := c.agents(ctx, con.in)
	if err != nil {
		return err
	}
	users, err := accounts.Write(accounts.Config{
		Dir: c.Dir, Account: c.Account, Agents: agents, Use: stream.AgentUse{Ledgers: c.Ledgers, Handshakes: c.Handshakes},
		ObjectStore: c.ObjectStore, Passwords: c.Passwords,
	})
	if err != nil {
		return fmt.Errorf("nats-config: %w", err)
	}
	if c.JSON {
		for i := range users {
			if err := writeJSON(con.out, users[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return c.show(con.out, users)
}

// agents returns those of the command line, then those of the file.
func (c *natsConfigCommand) agents(ctx context.Context, stdin io.Reader) (agents []string, err error) {
	agents = c.Agent
	if c.AgentFile == "" {
		return agents, nil
	}
	file, err := openAny(ctx, c.AgentFile, stdin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if id := strings.TrimSuffix(lines.Text(), "\r"); id != "" {
			agents = append(agents, id)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read agents of %s: %w: want an id of %d bytes at most a line", c.AgentFile, err, schema.MaxIDBytes)
	}
	return agents, nil
}

func (c *natsConfigCommand) show(w io.Writer, users []accounts.User) error {
	t := newTable(w)
	if err := t.row("user", "login", "inbox prefix", "secret file"); err != nil {
		return err
	}
	for i := range users {
		u := &users[i]
		if err := t.row(string(u.Role)+u.Agent, u.Login, u.Inbox, u.Secret); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nthe server's configuration takes %s by: accounts { include %q }\n",
		printable(filepath.Join(c.Dir, accounts.FileName)), accounts.FileName)
	return err
}
