package checker

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// checkBundles: the bundles of each session are parts 1, 2, … that name each
// other; each verifies with the pinned key; together they hold the session's
// traces once, in order, up to the last cut. Every bundle file is one of them, and
// every record of a seal is finished.
func (w *walk) checkBundles() {
	bundles, err := w.Store.Bundles(w.Context(), "", "")
	if err != nil {
		w.Fatal(err)
	}
	w.seen.Bundles = len(bundles)
	sessions := map[store.SessionKey][]store.Bundle{}
	known := map[string]bool{}
	for _, b := range bundles {
		key := store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}
		sessions[key] = append(sessions[key], b)
		known[b.Path] = true
	}
	traces := map[store.SessionKey][]*store.StoredTrace{}
	for _, row := range w.traces {
		key := store.SessionKey{AgentID: row.AgentID, SessionID: row.SessionID}
		traces[key] = append(traces[key], row)
	}
	w.seen.Sessions = len(traces)
	for key, parts := range sessions {
		w.checkParts(key, parts, traces[key])
	}
	w.checkFiles(known)
	w.checkSeals(sessions)
}

// checkParts checks the bundles of one session, whose traces are in stream order.
func (w *walk) checkParts(key store.SessionKey, parts []store.Bundle, traces []*store.StoredTrace) {
	previous := ""
	for i := range parts {
		b := &parts[i]
		n := 0
		for n < len(traces) && traces[n].Sequence <= b.LastSequence {
			n++
		}
		w.checkBundle(b, int64(i+1), previous, inOrder(traces[:n]))
		traces, previous = traces[n:], b.SHA256.String()
		w.seen.Sealed += n
	}
	if last := parts[len(parts)-1]; last.LastPart && len(traces) > 0 {
		w.Errorf("bundles: session %q of agent %q is closed and %d traces are in no bundle", key.SessionID, key.AgentID, len(traces))
	}
}

// inOrder is the order of the audit log: by sequence_number where all traces have
// one, else by event time, then as the stream has them.
func inOrder(traces []*store.StoredTrace) []*store.StoredTrace {
	ordered := slices.Clone(traces)
	if !slices.ContainsFunc(ordered, func(t *store.StoredTrace) bool { return t.SequenceNumber == nil }) {
		slices.SortStableFunc(ordered, func(a, b *store.StoredTrace) int { return int(*a.SequenceNumber) - int(*b.SequenceNumber) })
		return ordered
	}
	slices.SortStableFunc(ordered, func(a, b *store.StoredTrace) int { return a.EventTime.Compare(b.EventTime) })
	return ordered
}

func (w *walk) checkBundle(b *store.Bundle, part int64, previous string, traces []*store.StoredTrace) {
	data, err := os.ReadFile(filepath.Join(w.Bundles, b.Path))
	if err != nil {
		w.Errorf("bundles: %v", err)
		return
	}
	if schema.DigestOf(data) != b.SHA256 {
		w.Errorf("bundles: %s is not the file that was recorded", b.Path)
	}
	var ids []string
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{
		Keys: []ed25519.PublicKey{w.Key},
		Row: func(r *aivs.Row) {
			if r.ActionType != aivs.ActionOpen && r.ActionType != aivs.ActionSeal {
				ids = append(ids, w.traceID(r))
			}
		},
	})
	if err != nil || !report.Verified || report.Opening == nil {
		w.Errorf("bundles: %s does not verify: %v %+v", b.Path, err, report)
		return
	}
	o := report.Opening
	if o.SessionID != b.SessionID || o.AgentID != b.AgentID || o.Part != part || int64(b.Part) != part ||
		o.PreviousBundleHash != previous || b.PreviousSHA256 != previous || o.LastPart != b.LastPart {
		w.Errorf("bundles: %s, part %d after %q, opens with %+v", b.Path, part, previous, o)
	}
	want := make([]string, len(traces))
	for i, t := range traces {
		want[i] = t.TraceID
	}
	if !slices.Equal(ids, want) {
		w.Errorf("bundles: %s holds\n%v\nits traces are\n%v", b.Path, ids, want)
	}
}

func (w *walk) traceID(r *aivs.Row) string {
	var inputs struct {
		TraceID string `json:"trace_id"`
	}
	if err := json.Unmarshal([]byte(r.InputsJSON), &inputs); err != nil {
		w.Errorf("bundles: row %d of session %q: %v", r.ID, r.SessionID, err)
	}
	return inputs.TraceID
}

// checkFiles: no bundle lies about that nobody knows, nor half of one under a
// bundle's name. A file whose name begins with a dot was never one.
func (w *walk) checkFiles(known map[string]bool) {
	err := filepath.WalkDir(w.Bundles, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(w.Bundles, path)
		if !known[name] {
			w.Errorf("bundles: %s is in the directory and not recorded", name)
		}
		return err
	})
	if err != nil {
		w.Errorf("bundles: %v", err)
	}
}

func (w *walk) checkSeals(sessions map[store.SessionKey][]store.Bundle) {
	bucket, err := w.Client.Bucket(w.Context(), stream.Seals)
	if err != nil {
		w.Fatal(err)
	}
	for key, parts := range sessions {
		value, _, err := bucket.Get(w.Context(), seal.Key(key.AgentID, key.SessionID))
		if err != nil {
			w.Errorf("bundles: the seal of session %q of agent %q: %v", key.SessionID, key.AgentID, err)
			continue
		}
		record, err := seal.Decode(value)
		last := parts[len(parts)-1]
		if err != nil || record.State != seal.Sealed || record.SHA256 != last.SHA256.String() {
			w.Errorf("bundles: the seal of session %q of agent %q is %+v (%v), the last bundle %s", key.SessionID, key.AgentID, record, err, last.SHA256)
		}
	}
}
