package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
)

// checkBundles checks the bundle rows. Every session that is marked as sealed has its rows, parts
// 1, 2, …. Each row names a file that matches the row. The record in bucket seals names the last
// one. Together they contain the session's traces. Every file has a row.
func (c *check) checkBundles(ctx context.Context) error {
	for s, err := range c.Store.RecordedSessions(ctx) { // read before the bundle rows: the exporter writes a bundle's row first
		if err != nil {
			return err
		}
		known := c.sessionOf(s.AgentID, s.SessionID)
		known.expectedParts = max(known.expectedParts, int64(s.Bundles))
	}
	places, err := openPlaces(ctx, c.Store)
	if err != nil {
		return err
	}
	defer places.close()
	c.recorded = map[string]*events.Claim{}
	var parts []*store.Bundle
	for b, err := range c.Store.EachBundle(ctx) {
		if err != nil {
			return err
		}
		if len(parts) > 0 && (parts[0].AgentID != b.AgentID || parts[0].SessionID != b.SessionID) {
			if err := c.checkSession(ctx, parts, places); err != nil {
				return err
			}
			parts = parts[:0]
		}
		parts = append(parts, b)
	}
	if len(parts) > 0 {
		if err := c.checkSession(ctx, parts, places); err != nil {
			return err
		}
	}
	if err := c.checkUnmet(); err != nil {
		return err
	}
	return c.checkUnrecorded(ctx)
}

// sessionOf returns the state of a session, empty at first.
func (c *check) sessionOf(agentID, sessionID string) *sealedSession {
	key := store.SessionKey{AgentID: agentID, SessionID: sessionID}
	if c.sessions[key] == nil {
		c.sessions[key] = &sealedSession{}
	}
	return c.sessions[key]
}

// checkSession checks the rows of one session's bundles in order of their parts.
func (c *check) checkSession(ctx context.Context, parts []*store.Bundle, places *places) error {
	c.count().Sessions++
	known := c.sessionOf(parts[0].AgentID, parts[0].SessionID)
	known.compared = true
	parts, err := c.checkParts(parts, known.expectedParts)
	if err != nil {
		return err
	}
	for _, b := range parts {
		if err := c.checkFile(b); err != nil {
			return err
		}
	}
	if err := c.checkSeal(ctx, parts[len(parts)-1], known); err != nil {
		return err
	}
	return c.checkTracesOf(parts, places)
}

func about(kind Kind, b *store.Bundle) Difference {
	return Difference{Kind: kind, AgentID: b.AgentID, SessionID: b.SessionID, Part: int64(b.Part), File: b.Path}
}

// checkParts requires parts 1, 2, … up to the last one expected, each linked to the one before.
// It returns the rows to compare further.
func (c *check) checkParts(rows []*store.Bundle, last int64) (parts []*store.Bundle, err error) {
	next, previous := int64(1), ""
	slices.SortStableFunc(rows, func(a, b *store.Bundle) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(c.unlike(a), c.unlike(b)))
	})
	for _, b := range rows {
		c.count().Bundles++
		c.recorded[b.SHA256.String()] = &events.Claim{
			AgentID: b.AgentID, SessionID: b.SessionID, Part: int64(b.Part), File: b.Path, SHA256: b.SHA256.String(),
		}
		switch part := int64(b.Part); {
		case part < next:
			if err := c.differ(about(BundleRowForeign, b), "part %d has several rows: this one is of %s", part, b.SHA256); err != nil {
				return nil, err
			}
			continue
		case part > next:
			err = c.differ(about(BundleRowMissing, b), "the row before this one, of part %d, is missing", next)
		case b.PreviousSHA256 != previous:
			err = c.differ(about(BundleRowForeign, b), "it continues %.64q, the part before is %.64q", b.PreviousSHA256, previous)
		}
		if err != nil {
			return nil, err
		}
		next, previous = int64(b.Part)+1, b.SHA256.String()
		parts = append(parts, b)
	}
	if next <= last {
		b := *rows[len(rows)-1]
		b.Part, b.Path = uint32(next), "" // a part's number
		err = c.differ(about(BundleRowMissing, &b), "the session is sealed up to part %d, and there is no row of part %d", last, next)
	}
	return parts, err
}

// unlike returns 0 for a row that matches its file, 1 for others. Among several rows of a part
// the matching one sorts first.
func (c *check) unlike(b *store.Bundle) int {
	if f := c.files[b.Path]; f != nil && f.sha256 == b.SHA256.String() {
		return 0
	}
	return 1
}

// checkFile compares a row with its file.
func (c *check) checkFile(b *store.Bundle) error {
	if c.Bundles == "" {
		return nil
	}
	f, err := c.file(b.Path)
	if err != nil {
		return err
	}
	if f == nil {
		return c.differ(about(BundleMissing, b), "the file is not in the directory")
	}
	f.recorded = true
	if f.sha256 != b.SHA256.String() {
		return c.differ(about(BundleChanged, b), "the file's SHA-256 is %s, the recorded one %s", f.sha256, b.SHA256)
	}
	if f.opening == nil {
		return nil // another difference reports that it does not verify
	}
	o := f.opening
	if o.AgentID != b.AgentID || o.SessionID != b.SessionID || o.Part != int64(b.Part) || o.LastPart != b.LastPart ||
		o.PreviousBundleHash != b.PreviousSHA256 || o.KeyID != b.KeyID {
		return c.differ(about(BundleDiffers, b), "the bundle is part %d (last: %t) of session %q of agent %q by key %s, after %.64q",
			o.Part, o.LastPart, o.SessionID, o.AgentID, o.KeyID, o.PreviousBundleHash)
	}
	if f.traces != int64(b.TraceCount) || f.traceIDs != digestOfIDs(b.TraceIDs) {
		return c.differ(about(BundleDiffers, b), "the bundle holds %d traces, the row lists %d (said to be %d), or others", f.traces, len(b.TraceIDs), b.TraceCount)
	}
	return nil
}

// checkSeal compares a session's last row with its record. Where they differ it reads the record
// again: another part may have been sealed meanwhile.
func (c *check) checkSeal(ctx context.Context, last *store.Bundle, known *sealedSession) error {
	if known.agrees(last) {
		return nil
	}
	record, err := c.seal(ctx, store.SessionKey{AgentID: last.AgentID, SessionID: last.SessionID})
	if err != nil || record.agrees(last) {
		return err
	}
	if record == nil {
		return c.differ(about(SealDiffers, last), "bucket seals knows no such session")
	}
	return c.differ(about(SealDiffers, last), "the last row is %s, bucket seals says part %d is %s: %.64s", last.SHA256, record.part, record.state, record.sha256)
}

// checkUnmet reports sessions that are sealed and have no bundle row at all.
func (c *check) checkUnmet() error {
	var unmet []store.SessionKey
	for key, s := range c.sessions {
		if !s.compared && s.expectedParts > 0 {
			unmet = append(unmet, key)
		}
	}
	slices.SortFunc(unmet, func(a, b store.SessionKey) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID))
	})
	for _, key := range unmet {
		if err := c.differ(Difference{Kind: BundleRowMissing, AgentID: key.AgentID, SessionID: key.SessionID, Part: 1, File: c.sessions[key].file},
			"the session is sealed, and has no bundle row"); err != nil {
			return err
		}
	}
	return nil
}

// checkUnrecorded reports files without a row that are not being sealed.
func (c *check) checkUnrecorded(ctx context.Context) error {
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		f := c.files[path]
		if f.recorded {
			continue
		}
		record, err := c.seal(ctx, f.of())
		if err != nil {
			return err
		}
		if record != nil && record.file == path && (record.state == seal.Planned || c.recent(f)) {
			c.count().UnderWay++
			continue
		}
		d := Difference{Kind: BundleUnrecorded, AgentID: f.of().AgentID, SessionID: f.session, File: path}
		if err := c.differ(d, "no row of table bundles names this file (%s)", f.sha256); err != nil {
			return err
		}
	}
	return nil
}

// recent reports whether a bundle was sealed after the comparison began.
func (c *check) recent(f *bundleFile) bool {
	at, dated := exportedAt(f)
	return dated && !at.Before(c.summary.StartedAt.Truncate(time.Second))
}
