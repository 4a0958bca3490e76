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
	traces := open(c, c.Store.SessionPlaces(ctx), func(p *store.SessionPlace) place { return place{p.StreamCreated, p.Sequence} })
	defer traces.close()
	c.recorded = map[string]*events.Claim{}
	var parts []*store.Bundle
	for b, err := range c.Store.EachBundle(ctx) {
		if err != nil {
			return err
		}
		if len(parts) > 0 && (parts[0].AgentID != b.AgentID || parts[0].SessionID != b.SessionID) {
			if err := c.checkSession(ctx, parts, traces); err != nil || c.failed != nil {
				return err
			}
			parts = parts[:0]
		}
		parts = append(parts, b)
	}
	if len(parts) > 0 {
		if err := c.checkSession(ctx, parts, traces); err != nil {
			return err
		}
	}
	traces.rest(c.checkUnsealed)
	c.checkUnmet()
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
func (c *check) checkSession(ctx context.Context, rows []*store.Bundle, traces *cursor[store.SessionPlace]) error {
	c.count().Sessions++
	known := c.sessionOf(rows[0].AgentID, rows[0].SessionID)
	known.compared = true
	parts := c.checkParts(rows, known.expectedParts)
	for _, b := range parts {
		if err := c.checkFile(b); err != nil {
			return err
		}
	}
	if err := c.checkSeal(ctx, parts[len(parts)-1], known); err != nil {
		return err
	}
	c.checkTracesOf(rows, parts, known, traces)
	return nil
}

func about(kind Kind, b *store.Bundle) Difference {
	return Difference{Kind: kind, AgentID: b.AgentID, SessionID: b.SessionID, Part: int64(b.Part), File: b.Path}
}

// checkParts requires parts 1, 2, … up to the last one expected, each linked to the one before.
// It returns the rows to compare further.
func (c *check) checkParts(rows []*store.Bundle, last int64) (parts []*store.Bundle) {
	unlike := func(b *store.Bundle) int { // 0 for a row that matches its file: it sorts first among several rows of a part
		if f := c.files[b.Path]; f != nil && f.sha256 == b.SHA256.String() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b *store.Bundle) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(unlike(a), unlike(b)))
	})
	next, previous := int64(1), ""
	for _, b := range rows {
		c.count().Bundles++
		part, sha256 := int64(b.Part), b.SHA256.String()
		c.recorded[sha256] = &events.Claim{AgentID: b.AgentID, SessionID: b.SessionID, Part: part, File: b.Path, SHA256: sha256}
		switch {
		case part < next:
			c.differ(about(BundleRowForeign, b), "part %d has several rows: this one is of %s", part, sha256)
			continue
		case part > next:
			c.differ(about(BundleRowMissing, b), "the row before this one, of part %d, is missing", next)
		case b.PreviousSHA256 != previous:
			c.differ(about(BundleRowForeign, b), "it continues %.64q, the part before is %.64q", b.PreviousSHA256, previous)
		}
		next, previous = part+1, sha256
		parts = append(parts, b)
	}
	if next <= last {
		b := *rows[len(rows)-1]
		b.Part, b.Path = uint32(next), ""
		c.differ(about(BundleRowMissing, &b), "the session is sealed up to part %d, and there is no row of part %d", last, next)
	}
	return parts
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
		c.differ(about(BundleMissing, b), "the file is not in the directory")
		return nil
	}
	f.recorded = true
	o := f.opening
	switch {
	case f.sha256 != b.SHA256.String():
		c.differ(about(BundleChanged, b), "the file's SHA-256 is %s, the recorded one %s", f.sha256, b.SHA256)
	case o == nil: // another difference reports that it does not verify
	case o.AgentID != b.AgentID || o.SessionID != b.SessionID || o.Part != int64(b.Part) || o.LastPart != b.LastPart ||
		o.PreviousBundleHash != b.PreviousSHA256 || o.KeyID != b.KeyID:
		c.differ(about(BundleDiffers, b), "the bundle is part %d (last: %t) of session %q of agent %q by key %s, after %.64q",
			o.Part, o.LastPart, o.SessionID, o.AgentID, o.KeyID, o.PreviousBundleHash)
	case f.traces != int64(b.TraceCount) || f.traceIDs != digestOfIDs(b.TraceIDs):
		c.differ(about(BundleDiffers, b), "the bundle has %d traces, the row lists %d and counts %d, or they are other traces", f.traces, len(b.TraceIDs), b.TraceCount)
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
	switch {
	case err != nil || record.agrees(last):
		return err
	case record == nil:
		c.differ(about(SealDiffers, last), "bucket seals has no record of the session")
	default:
		c.differ(about(SealDiffers, last), "the last row is %s, bucket seals says part %d is %s: %.64s", last.SHA256, record.part, record.state, record.sha256)
	}
	return nil
}

// checkTracesOf checks that the rows of a session up to a part's last sequence are the traces
// that its bundles contain. Both sides are in the same order of sessions.
func (c *check) checkTracesOf(rows, parts []*store.Bundle, known *sealedSession, traces *cursor[store.SessionPlace]) {
	agent, session := parts[0].AgentID, parts[0].SessionID
	for traces.head != nil && cmp.Or(cmp.Compare(traces.head.AgentID, agent), cmp.Compare(traces.head.SessionID, session)) < 0 {
		c.checkUnsealed(traces.head)
		traces.advance()
	}
	earlier := known.stream != 0 && known.stream != c.horizon.traces.Created.UnixNano()
	if of := traces.head; earlier || !increasing(parts) || of != nil && of.AgentID == agent && of.SessionID == session && !of.StreamCreated.Equal(c.horizon.traces.Created) {
		c.checkStreamsOf(rows, known, traces)
		return
	}
	for _, b := range parts {
		var ids []string
		for ; traces.head != nil && traces.head.AgentID == agent && traces.head.SessionID == session; traces.advance() {
			if !traces.head.StreamCreated.Equal(c.horizon.traces.Created) {
				break // the stream is later than the comparison, or the row is foreign, which is reported with the messages
			}
			if traces.head.Sequence > b.LastSequence {
				break
			}
			ids = append(ids, traces.head.TraceID)
		}
		c.compareTraces(b, ids)
	}
}

// increasing reports whether each part has higher sequences than the one before. Otherwise they are of several streams.
func increasing(parts []*store.Bundle) bool {
	for i := range parts[1:] {
		if parts[i+1].FirstSequence <= parts[i].LastSequence {
			return false
		}
	}
	return true
}

// checkStreamsOf checks a session that has traces of an earlier stream TRACES. Sequences do not tell
// which part a row belongs to, so all rows are compared with all bundles. If the broker's data was lost, the parts
// may have begun at 1 again.
func (c *check) checkStreamsOf(bundles []*store.Bundle, known *sealedSession, traces *cursor[store.SessionPlace]) {
	last, current := bundles[len(bundles)-1], c.horizon.traces.Created
	if i := slices.IndexFunc(bundles, func(b *store.Bundle) bool { return b.SHA256.String() == known.sha256 }); i >= 0 {
		last = bundles[i]
	}
	goesOn := known.stream == current.UnixNano() // the last part is of the current stream
	bundled, stored := map[string]int{}, map[string]int{}
	for _, b := range bundles {
		for _, id := range b.TraceIDs {
			bundled[id]++
		}
	}
	for ; traces.head != nil && traces.head.AgentID == last.AgentID && traces.head.SessionID == last.SessionID; traces.advance() {
		row := traces.head
		stored[row.TraceID]++
		switch {
		case stored[row.TraceID] <= bundled[row.TraceID]:
			c.count().Sealed++
		case row.StreamCreated.Before(current) && goesOn: // nothing more of an earlier stream is sealed
			c.unsealed(about(TraceUnsealed, last), row)
		case row.StreamCreated.Before(current):
			c.checkUnsealed(row)
		case row.StreamCreated.Equal(current) && goesOn && row.Sequence <= last.LastSequence:
			d := about(TraceUnsealed, last)
			d.TraceID = row.TraceID
			c.differ(d, "the row is older than the end of the session's last part, and no part contains the trace")
		}
	}
	for _, b := range bundles {
		for _, id := range b.TraceIDs {
			if stored[id] > 0 {
				continue
			}
			if c.expired(b.AgentID, b.FirstEvent) {
				c.count().Expired++
				continue
			}
			d := about(SealedRowMissing, b)
			d.TraceID = id
			c.differ(d, "the bundle contains the trace, and there is no row")
		}
	}
}

// soonSealed is how long after stream TRACES was created a session with traces of the stream before may still be open.
const soonSealed = time.Hour

// checkUnsealed checks a row that is in no bundle. Nothing follows in an earlier stream, so its sessions become
// idle, and are sealed. A row that is not never got a receipt, or its receipt was lost with the broker's data.
func (c *check) checkUnsealed(row *store.SessionPlace) {
	switch current := c.horizon.traces.Created; {
	case !row.StreamCreated.Before(current):
	case c.Now.Sub(current) < soonSealed:
		c.count().UnderWay++
	default:
		c.unsealed(Difference{Kind: TraceUnsealed, AgentID: row.AgentID, SessionID: row.SessionID}, row)
	}
}

func (c *check) unsealed(d Difference, row *store.SessionPlace) {
	d.TraceID, d.Sequence = row.TraceID, row.Sequence
	c.differ(d, "no bundle contains the trace, and the stream TRACES that it came in (created %s) no longer exists", row.StreamCreated.Format(time.RFC3339Nano))
}

// compareTraces compares the ids of a part's rows with those that its bundle lists. A missing row
// whose message the stream still holds is reported with the message.
func (c *check) compareTraces(b *store.Bundle, ids []string) {
	unsealed, gone := differences(ids, b.TraceIDs)
	c.count().Sealed += uint64(len(ids) - len(unsealed))
	for _, id := range unsealed {
		d := about(TraceUnsealed, b)
		d.TraceID = id
		c.differ(d, "the row belongs to the part, and its bundle does not contain the trace")
	}
	if b.FirstSequence >= c.horizon.traces.FirstSequence {
		return
	}
	for _, id := range gone {
		if c.expired(b.AgentID, b.FirstEvent) {
			c.count().Expired++
			continue
		}
		d := about(SealedRowMissing, b)
		d.TraceID = id
		c.differ(d, "the bundle contains the trace, and there is no row")
	}
}

// differences returns the ids that only one of the lists has, or has more often.
func differences(a, b []string) (onlyA, onlyB []string) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB
}

// checkUnmet reports sessions that are sealed and have no bundle row at all.
func (c *check) checkUnmet() {
	for _, key := range slices.SortedFunc(maps.Keys(c.sessions), func(a, b store.SessionKey) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID))
	}) {
		if s := c.sessions[key]; !s.compared && s.expectedParts > 0 {
			c.differ(Difference{Kind: BundleRowMissing, AgentID: key.AgentID, SessionID: key.SessionID, Part: 1, File: s.file},
				"the session is sealed, and has no bundle row")
		}
	}
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
		recent := !f.exported.Before(c.summary.StartedAt.Truncate(time.Second)) // sealed after the comparison began
		if record != nil && record.file == path && (record.state == seal.Planned || recent) {
			c.count().UnderWay++
			continue
		}
		c.differ(c.ofFile(BundleUnrecorded, path), "no row of table bundles names this file (%s)", f.sha256)
	}
	return nil
}
