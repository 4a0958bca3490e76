package reading

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// bundlePlace is the content of a cursor of bundles.
type bundlePlace struct {
	Time   int64         `json:"t"` // Unix nanoseconds
	SHA256 schema.Digest `json:"d"`
}

// listedBundle is one bundle of an answer.
type listedBundle struct {
	AgentID        string                 `json:"agent_id"`
	SessionID      string                 `json:"session_id"`
	Part           uint32                 `json:"part"`
	LastPart       bool                   `json:"last_part"`
	SHA256         schema.Digest          `json:"sha256"`
	PreviousSHA256 string                 `json:"previous_sha256,omitempty"`
	KeyID          string                 `json:"key_id"`
	Bytes          uint64                 `json:"bytes"`
	Traces         uint64                 `json:"traces"`
	SealedAt       time.Time              `json:"sealed_at"`
	FirstEvent     time.Time              `json:"first_event"`
	LastEvent      time.Time              `json:"last_event"`
	Reason         string                 `json:"reason"`
	Path           string                 `json:"path"`
	SessionStatus  string                 `json:"session_status,omitempty"`
	Verdict        *schema.SessionVerdict `json:"verdict"`
}

// listBundles answers with a page of bundles, the newest first.
func (s *Service) listBundles(w http.ResponseWriter, r *http.Request, grant auth.Grant, _ func()) (int, error) {
	p := read(r, "agent_id", "session_id", "from", "to", "limit", "cursor")
	q := store.BundleQuery{SessionID: p.id("session_id"), Limit: p.limit()}
	q.From, q.To = p.during()
	var place bundlePlace
	if p.cursor(&place) {
		q.After = &store.PageBundle{ExportedAt: time.Unix(0, place.Time).UTC(), SHA256: place.SHA256}
	}
	var err error
	if q.Agents, q.AgentID, err = p.agents(grant); err != nil {
		return 0, err
	}
	limit := q.Limit
	q.Limit++
	bundles, err := s.rows.ListBundles(r.Context(), q)
	if err != nil {
		return 0, err
	}
	answer := struct {
		Bundles    []listedBundle `json:"bundles"`
		NextCursor string         `json:"next_cursor,omitempty"`
	}{Bundles: []listedBundle{}}
	if len(bundles) > limit {
		bundles = bundles[:limit]
		last := bundles[limit-1]
		if answer.NextCursor, err = cursorAt(bundlePlace{last.ExportedAt.UnixNano(), last.SHA256}); err != nil {
			return 0, err
		}
	}
	for i := range bundles {
		answer.Bundles = append(answer.Bundles, listed(&bundles[i]))
	}
	w.Header().Set("Cache-Control", "private, no-store")
	return problem.WriteJSON(w, http.StatusOK, answer), nil
}

func listed(b *store.ListedBundle) listedBundle {
	return listedBundle{
		AgentID: b.AgentID, SessionID: b.SessionID, Part: b.Part, LastPart: b.LastPart,
		SHA256: b.SHA256, PreviousSHA256: b.PreviousSHA256, KeyID: b.KeyID, Bytes: b.Bytes, Traces: b.TraceCount,
		SealedAt: b.ExportedAt, FirstEvent: b.FirstEvent, LastEvent: b.LastEvent, Reason: b.Reason,
		Path: filepath.ToSlash(b.Path), SessionStatus: b.SessionStatus, Verdict: b.Verdict,
	}
}

// getBundle answers with the archive of a bundle, if this process can read it and its bytes are those
// that were sealed.
func (s *Service) getBundle(w http.ResponseWriter, r *http.Request, grant auth.Grant, leave func()) (int, error) {
	p := read(r)
	q := store.BundleQuery{From: schema.EarliestTime, To: schema.LatestTime, Limit: 1}
	if err := q.SHA256.UnmarshalText([]byte(r.PathValue("sha256"))); err != nil || q.SHA256.IsZero() {
		return 0, unknownBundle(r)
	}
	var err error
	if q.Agents, q.AgentID, err = p.agents(grant); err != nil {
		return 0, err
	}
	bundles, err := s.rows.ListBundles(r.Context(), q)
	if err != nil {
		return 0, err
	}
	if len(bundles) == 0 {
		return 0, unknownBundle(r)
	}
	bundle := &bundles[0]
	file, err := OpenBundle(s.cfg.BundleDir, bundle.Path, bundle.SHA256)
	altered, isAltered := errors.AsType[*Altered](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, s.elsewhere(r, bundle)
	case isAltered:
		s.log.Error("a bundle was changed since it was sealed", "path", bundle.Path, "sha256", altered.Found, "sealed", bundle.SHA256)
		return 0, problem.New(http.StatusConflict, "altered", "%v; it is not served, and plumbline check --deep says more", altered)
	case err != nil:
		return 0, err
	}
	defer func() { _ = file.Close() }()
	return s.serveBundle(w, r, bundle, file, leave)
}

func unknownBundle(r *http.Request) error {
	return problem.New(http.StatusNotFound, "unknown_bundle",
		"no bundle has the SHA-256 %q, of an agent that this token covers: GET /v1/bundles lists them", clip(r.PathValue("sha256")))
}

// serveBundle serves a file whose bytes are those that were sealed.
func (s *Service) serveBundle(w http.ResponseWriter, r *http.Request, bundle *store.ListedBundle, file *os.File, leave func()) (int, error) {
	leave() // the file may take long, and needs no database
	name := path.Base(filepath.ToSlash(bundle.Path))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	return request.ServeContent(w, r, "application/gzip", "private, max-age=3600", bundle.SHA256, file), nil
}

// elsewhere says where a bundle is that is not here.
func (s *Service) elsewhere(r *http.Request, bundle *store.ListedBundle) error {
	copies, err := s.rows.BundleCopies(r.Context(), bundle.SHA256)
	if err != nil {
		return err
	}
	places := []string{"in the exporter's bundle directory, as " + filepath.ToSlash(bundle.Path)}
	for _, c := range copies {
		places = append(places, "at "+c.Destination+", as "+c.Path)
	}
	return problem.New(http.StatusNotFound, "bundle_elsewhere",
		"this ingest cannot read the bundle. It is %s. To serve bundles here, set bundle_dir (--bundle-dir) of ingest to a directory that has them", strings.Join(places, "; "))
}
