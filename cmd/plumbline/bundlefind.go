package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/export"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// sealedFlags say which sealed bundles a command is about, and where they are.
type sealedFlags struct {
	readerFlags `embed:""`
	Bundles     string `type:"path" placeholder:"DIR" help:"Directory of bundles. With --clickhouse-dsn: the bundle directory of that database. Alone: only this directory is read, no database. Default: that of the running up."`
	Agent       string `placeholder:"ID" help:"Only this agent. Default: every agent."`
}

// rangeFlags are a range of time.
type rangeFlags struct {
	From string `placeholder:"TIME" help:"Only bundles with decisions at this time or later: a day (2026-10-01) or a time (RFC 3339)."`
	To   string `placeholder:"TIME" help:"Only bundles with decisions before this time. --from 2026-10-01 --to 2026-11-01 is October."`
}

// interval returns the range that the flags name.
func (f *sealedFlags) interval(times *rangeFlags) (r export.Range, err error) {
	r.AgentID = f.Agent
	if r.From, err = dayOrTime("--from", times.From); err != nil {
		return r, err
	}
	if r.To, err = dayOrTime("--to", times.To); err != nil {
		return r, err
	}
	if !r.To.IsZero() && !r.From.Before(r.To) {
		return r, usagef("--to %s is not after --from %s: --to is the first moment that does not belong to the range", times.To, times.From)
	}
	return r, nil
}

// dayOrTime reads a time, or a day, which begins at midnight UTC. It returns the zero time for "".
func dayOrTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	at, err := schema.ParseTime(text)
	if err != nil {
		return at, usagef("%s %q is neither a day (2026-10-01) nor a time (2026-10-01T08:00:00Z)", flag, text)
	}
	return at.UTC(), nil
}

// sealedBundle is one sealed bundle, as a database records it or as it was found in a directory.
type sealedBundle struct {
	AgentID   string                `json:"agent_id"`
	SessionID string                `json:"session_id"`
	Part      int64                 `json:"part"`
	LastPart  bool                  `json:"last_part"`
	Traces    int64                 `json:"traces"`
	First     time.Time             `json:"first,omitzero"` // of its decisions
	Last      time.Time             `json:"last,omitzero"`
	SealedAt  string                `json:"sealed_at"`
	Verdict   schema.Recommendation `json:"verdict,omitempty"` // recorded; empty if there is none
	SHA256    string                `json:"sha256"`
	File      string                `json:"file"`             // below the bundle directory, with slashes
	Intact    *bool                 `json:"intact,omitempty"` // only where the list was made by reading the files

	report *aivs.Report // nil until the file is verified
}

// catalogue is a list of sealed bundles, and what is known to be missing from it.
type catalogue struct {
	dir       string // the bundle directory
	keyList   string // the file of the key list; empty if it is not known
	publicKey string // of the running up; empty otherwise
	bundles   []*sealedBundle
	missing   []export.Missing
	database  bool // it is from a database, which also knows what is not sealed
}

// find returns the sealed bundles of a range, with all parts of their sessions.
func (f *sealedFlags) find(ctx context.Context, r *export.Range) (*catalogue, error) {
	if f.Bundles != "" && f.ClickHouseDSN == "" {
		return fromDirectory(ctx, f.Bundles, r)
	}
	at, err := f.place(ctx)
	if err != nil {
		return nil, err
	}
	list := &catalogue{dir: cmp.Or(f.Bundles, at.Bundles, filepath.Join(cmp.Or(f.Data, defaultData), "bundles")), publicKey: at.PublicKey, database: true}
	if at.DataDir != "" {
		list.keyList = filepath.Join(at.DataDir, "keys", keystore.ListName)
	}
	s, err := store.Open(ctx, store.Config{DSN: cmp.Or(f.ClickHouseDSN, at.ClickHouseDSN), Tenant: f.Tenant})
	if err != nil {
		return nil, usageError{err}
	}
	return list, errors.Join(list.fromDatabase(ctx, s, r), s.Close())
}

// place returns the endpoints of the running up; empty ones if a database is named.
func (f *sealedFlags) place(ctx context.Context) (*machine.Endpoints, error) {
	if f.ClickHouseDSN != "" {
		return new(machine.Endpoints), nil
	}
	at, err := f.machineFlags.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; or name a directory of bundles with --bundles, or a database with --clickhouse-dsn", err)
	}
	return at, nil
}

// fromDatabase reads what the exporter recorded.
func (c *catalogue) fromDatabase(ctx context.Context, s *store.Store, r *export.Range) error {
	rows, err := s.Bundles(ctx, r.AgentID, "")
	if err != nil {
		return err
	}
	verdicts, err := s.SessionVerdicts(ctx, r.AgentID, "")
	if err != nil {
		return err
	}
	type part struct {
		agent, session string
		number         int64
	}
	recommended := map[part]schema.Recommendation{}
	for _, v := range verdicts {
		recommended[part{v.AgentID, v.SessionID, v.Part}] = v.RecommendedAction
	}
	wanted := map[store.SessionKey]bool{}
	for i := range rows {
		if r.Holds(rows[i].FirstEvent, rows[i].LastEvent) {
			wanted[store.SessionKey{AgentID: rows[i].AgentID, SessionID: rows[i].SessionID}] = true
		}
	}
	for i := range rows {
		b := &rows[i]
		if !wanted[store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}] {
			continue
		}
		c.bundles = append(c.bundles, &sealedBundle{
			AgentID: b.AgentID, SessionID: b.SessionID, Part: int64(b.Part), LastPart: b.LastPart, Traces: int64(b.TraceCount),
			First: b.FirstEvent, Last: b.LastEvent, SealedAt: b.ExportedAt.UTC().Format(time.RFC3339),
			Verdict: recommended[part{b.AgentID, b.SessionID, int64(b.Part)}], SHA256: b.SHA256.String(), File: filepath.ToSlash(b.Path),
		})
	}
	return c.unsealed(ctx, s, r)
}

// unsealed adds what the database has in no bundle.
func (c *catalogue) unsealed(ctx context.Context, s *store.Store, r *export.Range) error {
	found, err := s.UnsealedSessions(ctx, r.AgentID, r.From, r.To)
	if err != nil {
		return err
	}
	for _, u := range found {
		m := export.Missing{AgentID: u.AgentID, SessionID: u.SessionID, Traces: u.Traces, First: u.FirstEvent, Last: u.LastEvent, Why: "not sealed yet"}
		if u.Held != "" {
			m.Why = "held and not sealed: " + u.Held
		}
		c.missing = append(c.missing, m)
	}
	return nil
}

// fromDirectory reads the bundles of a directory. A bundle that is not intact is in the list
// whatever the range is: nothing that it says of itself can be relied on.
func fromDirectory(ctx context.Context, dir string, r *export.Range) (*catalogue, error) {
	paths, searched, err := bundlesIn([]string{dir})
	if err != nil {
		return nil, err
	}
	if !searched {
		return nil, usagef("--bundles %s is a file: want a directory of bundles", dir)
	}
	c := &catalogue{dir: dir}
	if _, err := os.Stat(filepath.Join(dir, keystore.ListName)); err == nil {
		c.keyList = filepath.Join(dir, keystore.ListName)
	}
	wanted := map[store.SessionKey]bool{}
	for _, path := range paths {
		b, err := readSealed(ctx, dir, path, aivs.Options{})
		if err != nil {
			return nil, err
		}
		if r.AgentID != "" && b.AgentID != r.AgentID && *b.Intact {
			continue
		}
		c.bundles = append(c.bundles, b)
		if !*b.Intact || r.Holds(b.First, b.Last) {
			wanted[store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}] = true
		}
	}
	c.bundles = slices.DeleteFunc(c.bundles, func(b *sealedBundle) bool {
		return !wanted[store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}]
	})
	slices.SortStableFunc(c.bundles, func(a, b *sealedBundle) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.Part, b.Part), cmp.Compare(a.File, b.File))
	})
	return c, nil
}

// readSealed verifies a bundle and returns what it says of itself.
func readSealed(ctx context.Context, dir, path string, options aivs.Options) (*sealedBundle, error) {
	b := new(sealedBundle)
	var times export.Times
	options.Row = times.Row
	report, err := verifyFile(ctx, path, options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil && ctx.Err() == nil {
		report, err = aivs.Unreadable(err), nil
	}
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	b.report, b.File, b.SHA256, b.Intact = report, filepath.ToSlash(name), report.SHA256, &report.Intact
	b.SessionID = report.SessionID
	if o := report.Opening; o != nil {
		b.AgentID, b.Part, b.LastPart, b.Traces, b.SealedAt = o.AgentID, o.Part, o.LastPart, o.TraceCount, o.ExportedAt
	}
	if report.Verdict != nil {
		b.Verdict = report.Verdict.RecommendedAction
	}
	if b.First, b.Last = times.First, times.Last; b.First.IsZero() { // it has no decision
		b.First, b.Last = report.ExportedAt, report.ExportedAt
	}
	return b, nil
}
