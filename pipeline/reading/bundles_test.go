package reading

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// content returns the bytes of a bundle.
func content(agent, session string, part int) []byte {
	return []byte("bundle " + agent + session + strings.Repeat("x", part))
}

// bundle records a bundle, and returns its digest.
func (r *rig) bundle(s *store.Store, agent, session string, part int) schema.Digest {
	r.t.Helper()
	row := store.Bundle{
		AgentID: agent, SessionID: session, Part: uint32(part), SHA256: schema.DigestOf(content(agent, session, part)),
		Path: "folder/" + session + strings.Repeat("x", part) + ".tar.gz", Bytes: uint64(len(content(agent, session, part))), ActionCount: 3, TraceCount: 1,
		FirstEvent: at, LastEvent: at, TraceIDs: []string{"t"}, KeyID: "k", Reason: "ended", ExportedAt: at.Add(time.Duration(part) * time.Hour),
	}
	if err := s.InsertBundles(r.t.Context(), []store.Bundle{row}); err != nil {
		r.t.Fatal(err)
	}
	return row.SHA256
}

// bundlePage is an answer of GET /v1/bundles.
type bundlePage struct {
	Bundles    []listedBundle `json:"bundles"`
	NextCursor string         `json:"next_cursor"`
}

func (r *rig) bundles(path string) (page bundlePage) {
	r.t.Helper()
	code, text := r.get(path)
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK {
		r.t.Fatalf("%s: %d %s, %v", path, code, text, err)
	}
	return page
}

// Bundles are listed with verdicts and states, and served as they were sealed or not at all.
func TestBundles(t *testing.T) {
	dir := t.TempDir()
	r := start(t, func(cfg *Config) { cfg.BundleDir = dir })
	first, second := r.bundle(r.rows, "did:web:a", "s", 1), r.bundle(r.rows, "did:web:a", "s", 2)
	other := r.bundle(r.rows, "did:web:b", "s", 3)
	verdict := &schema.SessionVerdict{AgentID: "did:web:a", SessionID: "s", Part: 2, Timestamp: at, RecommendedAction: schema.Review, Findings: []schema.SessionFinding{},
		Metadata: schema.SessionMetadata{AlgorithmVersion: "1", EngineVersion: "1", Profile: "spec", ChecksPerformed: []string{"gaps"}}}
	if err := r.rows.InsertSessionVerdicts(t.Context(), []*schema.SessionVerdict{verdict}); err != nil {
		t.Fatal(err)
	}
	if err := r.rows.InsertSessions(t.Context(), []store.Session{{AgentID: "did:web:a", SessionID: "s", Version: 1, Status: store.SessionHeld, FirstEvent: at, LastEvent: at, UpdatedAt: at}}); err != nil {
		t.Fatal(err)
	}
	page := r.bundles("/v1/bundles?limit=2")
	if len(page.Bundles) != 2 || page.Bundles[0].SHA256 != other || page.Bundles[1].SHA256 != second {
		t.Fatalf("the first page is %+v", page)
	}
	b := page.Bundles[1]
	if b.Part != 2 || b.SessionStatus != store.SessionHeld || b.Verdict == nil || b.Verdict.RecommendedAction != schema.Review || b.KeyID != "k" || page.Bundles[0].Verdict != nil {
		t.Errorf("part 2 is %+v", b)
	}
	if next := r.bundles("/v1/bundles?limit=2&cursor=" + page.NextCursor); len(next.Bundles) != 1 || next.Bundles[0].SHA256 != first || next.NextCursor != "" {
		t.Errorf("the second page is %+v", next)
	}
	for query, want := range map[string]int{"agent_id=did:web:b": 1, "session_id=s&agent_id=did:web:a": 2, "from=2026-11-20T14:00:00Z": 2, "to=2026-11-20T14:00:00Z": 1, "session_id=none": 0} {
		if page := r.bundles("/v1/bundles?" + query); len(page.Bundles) != want {
			t.Errorf("%s: %d bundles, want %d", query, len(page.Bundles), want)
		}
	}

	copied := store.BundleCopy{Destination: "https://s3.example/evidence", Path: "folder/sx.tar.gz", SHA256: first, Bytes: 1, DeliveredAt: at}
	if err := r.rows.InsertBundleCopies(t.Context(), []store.BundleCopy{copied}); err != nil {
		t.Fatal(err)
	}
	path := "/v1/bundles/" + first.String()
	if p := r.refused(path, http.StatusNotFound, "bundle_elsewhere"); !strings.Contains(p.Message, "folder/sx.tar.gz") || !strings.Contains(p.Message, "https://s3.example/evidence") {
		t.Errorf("a bundle that is elsewhere: %s", p.Message)
	}
	file := filepath.Join(dir, "folder", "sx.tar.gz")
	write := func(text string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := string(content("did:web:a", "s", 1))
	write(whole)
	code, header, text := requests.Send(t, http.DefaultClient, http.MethodGet, r.url+path, nil)
	if code != http.StatusOK || text != whole || header.Get("Content-Type") != "application/gzip" || header.Get("Content-Disposition") != "attachment; filename=sx.tar.gz" {
		t.Errorf("%d %s %q", code, header, text)
	}
	if code, text := r.get(path, "Range: bytes=0-3"); code != http.StatusPartialContent || text != whole[:4] {
		t.Errorf("a part: %d %q", code, text)
	}
	if code, _ := r.get(path, "If-None-Match: "+header.Get("ETag")); code != http.StatusNotModified {
		t.Errorf("unchanged: %d", code)
	}
	write(whole + "!")
	r.refused(path, http.StatusConflict, "altered")
}

// A path in the database that leads out of the bundle directory serves nothing.
func TestBundlePathsStayInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(cfg *Config) {
		cfg.BundleDir = filepath.Join(dir, "bundles")
		if err := os.Mkdir(cfg.BundleDir, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "bundles", "link")); err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"../secret", filepath.Join(dir, "secret"), "link"} {
		row := store.Bundle{AgentID: "a", SessionID: path, Part: uint32(i + 1), SHA256: schema.DigestOf([]byte("secret")), Path: path, Bytes: 6, FirstEvent: at, LastEvent: at, ExportedAt: at.Add(time.Duration(i) * time.Hour)}
		if err := r.rows.InsertBundles(t.Context(), []store.Bundle{row}); err != nil {
			t.Fatal(err)
		}
		if code, text := r.get("/v1/bundles/" + row.SHA256.String()); code == http.StatusOK || strings.HasPrefix(text, "secret") {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
}
