package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// dropSealed removes from a part the traces that an earlier bundle of the session holds, although
// their rows have sequences of this part: if the broker's clock is set back, a copy of a sealed trace
// is dated earlier than the trace, and the tables keep the copy's row instead. A row of table bundles
// alone is not enough to leave a trace out: the file must hold it.
//
// The first part asks nothing. The others ask for the bundles whose events overlap theirs, and only
// where there are such for the ids of the traces within.
func (e *exporter) dropSealed(ctx context.Context, j *job) error {
	plan := &j.part.Plan
	if plan.Part == 1 {
		return nil
	}
	receipted := make(map[schema.Digest]bool, len(j.receipts()))
	for _, r := range j.receipts() {
		receipted[r.Digest] = true
	}
	query := store.EarlierQuery{Session: j.session.key, Part: plan.Part}
	var own []*store.StoredTrace
	for _, t := range j.part.Traces {
		if t.Sequence <= plan.After || t.Sequence > plan.Cut && !receipted[t.Digest] {
			continue
		}
		if len(own) == 0 || t.EventTime.Before(query.From) {
			query.From = t.EventTime
		}
		if t.EventTime.After(query.To) {
			query.To = t.EventTime
		}
		own = append(own, t)
	}
	if len(own) == 0 {
		return nil
	}
	overlapping, err := e.rows.EarlierBundles(ctx, query)
	if err != nil || len(overlapping) == 0 {
		return err
	}
	own = slices.DeleteFunc(own, func(t *store.StoredTrace) bool {
		return !slices.ContainsFunc(overlapping, func(b store.EarlierBundle) bool {
			return !t.EventTime.Before(b.FirstEvent) && !t.EventTime.After(b.LastEvent)
		})
	})
	for some := range slices.Chunk(own, missingAtOnce) {
		query.TraceIDs = query.TraceIDs[:0]
		for _, t := range some {
			query.TraceIDs = append(query.TraceIDs, t.TraceID)
		}
		bundles, err := e.rows.EarlierBundles(ctx, query)
		if err != nil {
			return err
		}
		for _, b := range bundles {
			if err := e.dropHeld(ctx, j, some, receipted, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropHeld removes from a part those of its traces that the file of a bundle holds, with their rows. The
// receipt of a copy may be gone, because nothing was left to seal when it came; then stream TRACES must
// have the copy.
func (e *exporter) dropHeld(ctx context.Context, j *job, traces []*store.StoredTrace, receipted map[schema.Digest]bool, b store.EarlierBundle) error {
	held, err := e.linesOf(j.session.key.SessionID, b)
	if err != nil {
		return fmt.Errorf("read the earlier part %d: %w", b.Part, err)
	}
	for _, t := range traces {
		line, err := seal.LineDigest(t, e.rules)
		if err != nil || !held[line] { // convert reports an error
			continue
		}
		if !receipted[t.Digest] {
			data, err := e.broker.Trace(ctx, t.Sequence)
			if err != nil && !errors.Is(err, stream.ErrNotFound) {
				return err
			}
			if err != nil || schema.DigestOf(data) != t.Digest {
				continue
			}
		}
		j.drop(t.Digest)
		j.part.Traces = slices.DeleteFunc(j.part.Traces, func(row *store.StoredTrace) bool { return row == t })
	}
	return nil
}

// linesOf returns the digests of the traces in the file of a bundle. There are none if the file is not
// there, or is not the bundle that the row describes.
func (e *exporter) linesOf(sessionID string, b store.EarlierBundle) (map[schema.Digest]bool, error) {
	if !filepath.IsLocal(b.Path) {
		return nil, nil
	}
	file, err := os.Open(filepath.Join(e.cfg.bundleDir(), b.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := map[schema.Digest]bool{}
	report, err := aivs.Verify(file, aivs.Options{Row: func(row *aivs.Row) {
		var inputs struct {
			Line schema.Digest `json:"trace_sha256"`
		}
		if json.Unmarshal([]byte(row.InputsJSON), &inputs) == nil {
			lines[inputs.Line] = true
		}
	}})
	if err != nil {
		return nil, err
	}
	if !report.Intact || report.SHA256 != b.SHA256.String() || report.SessionID != sessionID {
		return nil, nil
	}
	return lines, nil
}
