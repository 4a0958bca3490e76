package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/export"
	"github.com/plumbline/plumbline/pipeline/durable"
)

type bundleListCommand struct {
	sealedFlags `embed:""`
	rangeFlags  `embed:""`
	JSON        bool `help:"Print one JSON object for each bundle."`
}

// Help returns the examples.
func (*bundleListCommand) Help() string {
	return examples(
		"plumbline bundle ls",
		"plumbline bundle ls --agent did:web:buyer.example --from 2026-10-01 --json",
	)
}

// Run lists the bundles. For a directory it verifies each of them.
func (c *bundleListCommand) Run(ctx context.Context, con *console) error {
	interval, err := c.interval(&c.rangeFlags)
	if err != nil {
		return err
	}
	list, err := c.find(ctx, &interval)
	if err != nil {
		return err
	}
	bad := 0
	t := newTable(con.out)
	t.row("agent", "session", "part", "decisions", "first", "last", "sealed", "verdict", "sha256", "file")
	for _, b := range list.bundles {
		if c.JSON {
			if err := writeJSON(con.out, b); err != nil {
				return err
			}
		}
		verdict := strings.ToUpper(string(b.Verdict))
		if b.report != nil && b.report.VerdictOver > 0 {
			verdict = "not read"
		}
		if b.Intact != nil && !*b.Intact {
			bad++
			verdict = "NOT INTACT"
		}
		part := fmt.Sprint(b.Part)
		if b.LastPart {
			part += " (last)"
		}
		t.row(b.AgentID, b.SessionID, part, b.Traces, b.First, b.Last, b.SealedAt, verdict, b.SHA256[:min(12, len(b.SHA256))], b.File)
	}
	if !c.JSON {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(list.missing) > 0 {
		fmt.Fprintf(con.errs, "plumbline: %d sessions have records that are in no bundle; bundle export names them\n", len(list.missing))
	}
	return found(nil, bad == 0)
}

type bundleGetCommand struct {
	sealedFlags `embed:""`
	ID          string `arg:"" name:"session|id" help:"The session's id, or the beginning of the bundle's SHA-256 (8 digits or more)."`
	Part        int64  `placeholder:"N" help:"Which part of the session, if it has several."`
	Out         string `short:"o" placeholder:"FILE" help:"File to write. Default: the bundle's own name, in the current directory."`
}

// Help returns the examples.
func (*bundleGetCommand) Help() string {
	return examples(
		"plumbline bundle get session-1",
		"plumbline bundle get 3f2a91c07b --out bundle.tar.gz",
	)
}

// Run copies a bundle. It overwrites nothing.
func (c *bundleGetCommand) Run(ctx context.Context, con *console) error {
	list, err := c.find(ctx, &export.Range{AgentID: c.Agent})
	if err != nil {
		return err
	}
	b, err := c.choose(list)
	if err != nil {
		return err
	}
	path := filepath.Join(list.dir, filepath.FromSlash(b.File))
	copied, err := readSealed(ctx, list.dir, path, aivs.Options{})
	if err != nil {
		return fmt.Errorf("bundle of session %q: %w", b.SessionID, err)
	}
	if copied.SHA256 != b.SHA256 {
		return fmt.Errorf("%s: its SHA-256 is %s, and the one recorded when it was sealed is %s: nothing was copied", path, copied.SHA256, b.SHA256)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.SHA256 {
		return fmt.Errorf("%s was changed while it was copied: nothing was copied", path)
	}
	out := c.Out
	if out == "" {
		out = filepath.Base(path)
	}
	if err := durable.Create(out, data, 0o644); errors.Is(err, fs.ErrExist) {
		return usagef("%s exists and is left as it is: name another file with -o", out)
	} else if err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	word, _, _ := strings.Cut(copied.report.Conclusion(), ":")
	if _, err := fmt.Fprintf(con.out, "%s  %s  sha256 %s\n", word, printable(out), copied.SHA256); err != nil {
		return err
	}
	return found(nil, copied.report.Intact)
}

// choose returns the one bundle that the command line names.
func (c *bundleGetCommand) choose(list *catalogue) (*sealedBundle, error) {
	var matches []*sealedBundle
	for _, b := range list.bundles {
		digest := len(c.ID) >= 8 && strings.HasPrefix(b.SHA256, strings.ToLower(c.ID))
		if (b.SessionID == c.ID || digest) && (c.Part == 0 || b.Part == c.Part) {
			matches = append(matches, b)
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return nil, fmt.Errorf("%w: no sealed bundle of session %q, and none whose SHA-256 begins with that: plumbline bundle ls lists them", errNothing, c.ID)
	}
	var names []string
	for _, b := range matches {
		names = append(names, fmt.Sprintf("part %d of agent %q, sha256 %.12s", b.Part, b.AgentID, b.SHA256))
	}
	return nil, usagef("%d bundles match: choose one with --part, --agent or its SHA-256, or take all of them with bundle export: %s", len(matches), strings.Join(names, "; "))
}
