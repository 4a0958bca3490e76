package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/auth"
)

type tokenCommands struct {
	New    tokenNewCommand    `cmd:"" help:"Make a token, print it once, and store its hash."`
	LS     tokenLSCommand     `cmd:"" name:"ls" help:"List the tokens by name, with what each permits."`
	Revoke tokenRevokeCommand `cmd:"" help:"Remove a token. Services refuse it within a second."`
	Rotate tokenRotateCommand `cmd:"" help:"Replace a token by a new one with the same rights. The old one stays valid for --overlap."`
}

// tokenPlace names a token file.
type tokenPlace struct {
	machineFlags `embed:""`
	File         string `type:"path" placeholder:"FILE" help:"The token file: the token_file of an ingest. Default: that of the running plumbline up, otherwise tokens.jsonl in the data directory."`
}

// find returns the token file, and the running up that reads it; nil if none does.
func (p *tokenPlace) find(ctx context.Context) (auth.TokenFile, *machine.Endpoints, error) {
	if p.File != "" {
		return auth.TokenFile{Path: p.File}, nil, nil
	}
	at, err := p.machineFlags.find(ctx)
	if errors.Is(err, machine.ErrNotRunning) {
		return auth.TokenFile{Path: filepath.Join(cmp.Or(p.Data, defaultData), auth.FileName)}, nil, nil
	}
	if err != nil {
		return auth.TokenFile{}, nil, fmt.Errorf("%w; or name the token file with --file", err)
	}
	return auth.TokenFile{Path: cmp.Or(at.TokenFile, filepath.Join(at.DataDir, auth.FileName))}, at, nil
}

// noteOpen warns if the running up reads no token file: it began before there was one.
func noteOpen(con *console, at *machine.Endpoints) {
	if at != nil && at.TokenFile == "" {
		fmt.Fprintln(con.errs, "The running plumbline up was started without a token file and lets everyone on this machine in: restart it to require tokens.")
	}
}

// showToken prints a new token, which nobody can print again.
func showToken(con *console, token string, file auth.TokenFile, otherwise string) error {
	if _, err := fmt.Fprintln(con.out, token); err != nil {
		return fmt.Errorf("the new token is in force, and cannot be shown: %w: %s", err, otherwise)
	}
	fmt.Fprintf(con.errs, "This is the only time that the token is shown; %s has its hash.\n", printable(file.Path))
	return nil
}

type tokenNewCommand struct {
	Name     string         `required:"" placeholder:"NAME" help:"Name of the token, for logs, messages, and the other commands."`
	Agent    []string       `required:"" sep:"none" placeholder:"AGENT" help:"Agent that the token may speak for: an id, PREFIX* or * (all). May be repeated."`
	Scope    []string       `placeholder:"SCOPE" help:"What the token permits (docs/PUBLISH.md#tokens), separated by commas. Default: what publishers need, traces:write, cards:write, cards:read and sessions:write."`
	Source   message.Source `placeholder:"KIND" help:"Kind of the token's holder: human, agent or system. Scope messages:write needs it."`
	ValidFor time.Duration  `placeholder:"DURATION" help:"How long the token is valid. Default: until it is revoked."`
	tokenPlace
}

// Help returns the examples.
func (*tokenNewCommand) Help() string {
	return examples(
		"plumbline token new --name shop --agent did:web:shop.example",
		"plumbline token new --name dashboard --agent '*' --scope traces:read,bundles:read --valid-for 720h",
		"plumbline token new --name fleet --agent 'fleet-*' --file /etc/plumbline/tokens.jsonl",
	)
}

func (c *tokenNewCommand) Run(ctx context.Context, con *console) error {
	if c.ValidFor < 0 {
		return usagef("--valid-for is negative: want 0 or more")
	}
	entry := auth.Entry{Name: c.Name, Agents: c.Agent, Source: c.Source, Scopes: auth.PublisherScopes()}
	if len(c.Scope) > 0 {
		entry.Scopes = nil
	}
	for _, scope := range c.Scope {
		entry.Scopes = append(entry.Scopes, auth.Scope(scope))
	}
	now := time.Now()
	if c.ValidFor > 0 {
		entry.Expires = now.Add(c.ValidFor).UTC().Truncate(time.Second)
	}
	file, at, err := c.find(ctx)
	if err != nil {
		return err
	}
	token, err := file.New(ctx, entry, now)
	if err != nil {
		return usageError{fmt.Errorf("token new: %w", err)}
	}
	if err := showToken(con, token, file, "remove it with plumbline token revoke, and make it again"); err != nil {
		return err
	}
	fmt.Fprintln(con.errs, `Give it to the publisher: PLUMBLINE_TOKEN=…, --token …, or the header "Authorization: Bearer …".`)
	noteOpen(con, at)
	return nil
}

type tokenLSCommand struct {
	tokenPlace
	JSON bool `help:"Print one JSON object for each token."`
}

// Help returns the examples.
func (*tokenLSCommand) Help() string {
	return examples("plumbline token ls", "plumbline token ls --file /etc/plumbline/tokens.jsonl --json")
}

// listedToken is a line of token ls: an entry without hashes.
type listedToken struct {
	Name     string         `json:"name"`
	Agents   []string       `json:"agents"`
	Scopes   []auth.Scope   `json:"scopes"`
	Source   message.Source `json:"source,omitempty"`
	Created  time.Time      `json:"created,omitzero"`
	Expires  time.Time      `json:"expires,omitzero"`
	Expired  bool           `json:"expired"`
	Previous []time.Time    `json:"previous_expire,omitempty"` // of tokens that rotation replaced
}

func (c *tokenLSCommand) Run(ctx context.Context, con *console) error {
	file, _, err := c.find(ctx)
	if err != nil {
		return err
	}
	entries, err := file.List()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w: make the first token with plumbline token new", errNothing, err)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	var listed []listedToken
	for _, e := range entries {
		l := listedToken{Name: e.Name, Agents: e.Agents, Scopes: e.Scopes, Source: e.Source, Created: e.Created, Expires: e.Expires,
			Expired: !e.Expires.IsZero() && !now.Before(e.Expires)}
		for _, p := range e.Previous {
			if now.Before(p.Expires) {
				l.Previous = append(l.Previous, p.Expires)
			}
		}
		listed = append(listed, l)
	}
	if c.JSON {
		return writeEach(con.out, listed)
	}
	t := newTable(con.out)
	t.row("name", "agents", "scopes", "created", "expires", "previous until")
	for _, l := range listed {
		scopes := make([]string, len(l.Scopes))
		for i, scope := range l.Scopes {
			scopes[i] = string(scope)
		}
		var previous time.Time
		for _, until := range l.Previous {
			if until.After(previous) {
				previous = until
			}
		}
		t.row(l.Name, strings.Join(l.Agents, ","), strings.Join(scopes, ","), bound(l.Created), bound(l.Expires), bound(previous))
	}
	return t.Flush()
}

type tokenRevokeCommand struct {
	Name string `arg:"" placeholder:"NAME" help:"Name of the token."`
	tokenPlace
}

// Help returns the examples.
func (*tokenRevokeCommand) Help() string {
	return examples("plumbline token revoke shop", "plumbline token revoke fleet --file /etc/plumbline/tokens.jsonl")
}

func (c *tokenRevokeCommand) Run(ctx context.Context, con *console) error {
	file, at, err := c.find(ctx)
	if err != nil {
		return err
	}
	if err := file.Revoke(ctx, c.Name); err != nil {
		return missing("token revoke", err)
	}
	_, err = fmt.Fprintf(con.out, "revoked %s: services that use %s refuse it within a second\n", printable(c.Name), printable(file.Path))
	noteOpen(con, at)
	return err
}

type tokenRotateCommand struct {
	Name     string        `arg:"" placeholder:"NAME" help:"Name of the token."`
	Overlap  time.Duration `default:"24h" help:"How long the previous token stays valid, until its publisher has the new one (${default}); 0s if somebody else may have it, which ends the tokens of earlier rotations, too."`
	ValidFor time.Duration `placeholder:"DURATION" help:"How long the new token is valid. Default: until it is revoked."`
	tokenPlace
}

// Help returns the examples.
func (*tokenRotateCommand) Help() string {
	return examples("plumbline token rotate shop", "plumbline token rotate shop --overlap 0s", "plumbline token rotate dashboard --valid-for 720h")
}

func (c *tokenRotateCommand) Run(ctx context.Context, con *console) error {
	if c.Overlap < 0 || c.ValidFor < 0 {
		return usagef("--overlap or --valid-for is negative: want 0 or more")
	}
	file, at, err := c.find(ctx)
	if err != nil {
		return err
	}
	token, entry, err := file.Rotate(ctx, c.Name, c.Overlap, c.ValidFor, time.Now())
	if err != nil {
		return missing("token rotate", err)
	}
	if err := showToken(con, token, file, "rotate it again"); err != nil {
		return err
	}
	noteOpen(con, at)
	if len(entry.Previous) > 0 {
		last := entry.Previous[len(entry.Previous)-1].Expires
		fmt.Fprintf(con.errs, "The previous token is valid until %s: give the new one to its publisher before.\n", last.Format(time.RFC3339))
	} else {
		fmt.Fprintln(con.errs, "The previous token is refused within a second.")
	}
	return nil
}

// missing returns the error of a command whose token file or entry may be missing.
func missing(command string, err error) error {
	err = fmt.Errorf("%s: %w", command, err)
	if errors.Is(err, auth.ErrNoEntry) {
		return usageError{err}
	}
	return err
}
