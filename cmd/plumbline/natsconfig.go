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
	Dir         string   `arg:"" type:"path" placeholder:"DIR" help:"Directory for accounts.conf and the secrets. Existing secrets are kept."`
	Agent       []string `sep:"none" placeholder:"ID" help:"An agent that publishes on NATS itself. Repeatable."`
	AgentFile   string   `placeholder:"FILE" help:"File of such agents, one id per line; - is standard input."`
	Ledgers     bool     `help:"Also let agents publish entries of their own ledgers (docs/LEDGER.md)."`
	Handshakes  bool     `help:"Also let agents send handshake messages (docs/HANDSHAKE.md)."`
	ObjectStore string   `placeholder:"NAME" help:"Let the exporter copy bundles to this object store (docs/DESTINATIONS.md)."`
	Account     string   `default:"PLUMBLINE" help:"Name of the account of streams and services (${default}). Each tenant has its own. The account of agents has the same name with _AGENTS appended."`
	Passwords   bool     `help:"Use user names and passwords instead of nkeys."`
	JSON        bool     `help:"Print one JSON object for each user."`
}

// Help returns the text below the usage.
func (*natsConfigCommand) Help() string {
	return `Writes the users of your own NATS server (docs/NATS.md). An agent may publish on its own subject and read its own inbox, and nothing
else. Each service has the rights that it needs. Include the file in the server's configuration: accounts { include "accounts.conf" }.
The seed of each user's nkey, or its password, is in a file of mode 0600 and is not printed. To add or remove agents, run the command
again with all agents.

` + examples(
		"plumbline nats-config /etc/plumbline/nats --agent did:web:buyer.example --agent did:web:seller.example",
		"plumbline nats-config /etc/plumbline/nats --agent-file agents.txt --handshakes",
	)
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
		return writeEach(con.out, users)
	}
	t := newTable(con.out)
	t.row("user", "login", "inbox prefix", "secret file")
	for i := range users {
		u := &users[i]
		t.row(string(u.Role)+u.Agent, u.Login, u.Inbox, u.Secret)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "\nInclude %s in the server's configuration: accounts { include %q }\n",
		printable(filepath.Join(c.Dir, accounts.FileName)), accounts.FileName)
	return err
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
		return nil, fmt.Errorf("read the agents in %s: %w: want one id per line, of at most %d bytes", c.AgentFile, err, schema.MaxIDBytes)
	}
	return agents, nil
}
