package web

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// bundle seals an empty part of a session in a directory, and records it with a verdict.
func (r *rig) bundle(s *store.Store, dir, agent, session string) (sha256 string, file string) {
	r.t.Helper()
	built, err := aivs.Build(&aivs.Input{SessionID: session, AgentID: agent, ExportedAt: 1_790_000_000, Part: 1, LastPart: true, TraceCount: 2,
		Generator: "test", GeneratorURL: "https://example.org", Rows: aivs.SliceRows([]aivs.Row{
			{ActionType: aivs.ActionToolCall, ToolName: "shop.buy", InputsJSON: "{}", OutputsJSON: "{}", Timestamp: 1_790_000_000},
			{ActionType: aivs.ActionToolCall, ToolName: "shop.pay", InputsJSON: "{}", OutputsJSON: "{}", Timestamp: 1_790_000_001}})},
		ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		r.t.Fatal(err)
	}
	file = filepath.Join(dir, schema.DigestOf([]byte(agent+session)).String()+".tar.gz")
	if err := os.WriteFile(file, built.Bytes, 0o600); err != nil {
		r.t.Fatal(err)
	}
	now := time.Now()
	err = s.InsertBundles(r.t.Context(), []store.Bundle{{AgentID: agent, SessionID: session, Part: 1, SHA256: schema.DigestOf(built.Bytes), LastPart: true, Path: filepath.Base(file),
		Bytes: uint64(built.Size), ActionCount: uint64(built.Rows), TraceCount: 2, FirstEvent: now, LastEvent: now, LastSequence: 1 << 40, TraceIDs: []string{},
		ChainHash: built.ChainHash, KeyID: "key-1", Reason: "ended", ExportedAt: now}})
	if err != nil {
		r.t.Fatal(err)
	}
	err = s.InsertSessionVerdicts(r.t.Context(), []*schema.SessionVerdict{{AgentID: agent, SessionID: session, Part: 1, LastPart: true, Timestamp: now, RecommendedAction: schema.Review, Traces: schema.SessionTraces{Total: 2, Verified: 1, CardUnknown: 1},
		Findings: slices.Repeat([]schema.SessionFinding{{Type: schema.TraceGap, Severity: schema.SeverityMedium, Description: "numbers 3 to 4 never arrived", TraceID: "t-1"}}, 40),
		Metadata: schema.SessionMetadata{AlgorithmVersion: "1", EngineVersion: "1", Profile: "spec", ChecksPerformed: []string{"gaps"}, Unchecked: []string{"loops beyond 10,000 traces"}}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return built.SHA256, file
}

// A session's page shows each decision in order with its verdict, and that nothing is sealed yet.
func TestOpenSession(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows,
		fact{agent: "a", trace: "t-1", session: "s", ago: time.Minute, text: "the first of two"},
		fact{agent: "a", trace: "t-2", session: "s", ago: time.Second, text: "the second of two", violations: []string{"FORBIDDEN_ACTION"}},
		fact{agent: "a", trace: "t-3", session: "other", text: "elsewhere"}, fact{agent: "b", trace: "t-4", session: "s", text: "of another agent"})
	text := r.visitor("").page(sessionAddress("a", "s", ""), "Nothing of this session is sealed yet", "the first of two", "the second of two", "FORBIDDEN_ACTION",
		"Reported when forbidden_actions lists the action&#39;s name", "✓", "honesty", "<dt>traces stored, 2 not sealed</dt><dd>2</dd>")
	r.visitor("").page(sessionAddress("a", "s", "t-2"), "the first of two", `id="named"`) // all of a session that fits on a page
	if strings.Contains(text, "elsewhere") || strings.Contains(text, "of another agent") || strings.Index(text, "the first") > strings.Index(text, "the second") {
		t.Errorf("wrong traces or order:\n%s", text)
	}
}

// A session that is sealed has its verdict and bundle; the chain is read from the bundle, row by row.
func TestSealedSession(t *testing.T) {
	dir := t.TempDir()
	r := start(t, func(cfg *Config) { cfg.BundleDir = dir })
	r.put(r.rows, fact{agent: "a", trace: "t-1", session: "s"}, fact{agent: "a", trace: "t-2", session: "s"})
	sha256, file := r.bundle(r.rows, dir, "a", "s")
	v := r.visitor("")
	v.page(sessionAddress("a", "s", ""), "<dd>sealed</dd>", "TRACE_GAP", "numbers 3 to 4 never arrived", `<span class="severity medium">review</span> <span class="soft">1 trace of unknown cards</span>`, chainAddress(sha256), "and more, 40 in all", "Not checked: <bdi>loops beyond 10,000 traces")
	text := v.page(chainAddress(sha256), "1 to 4 of 4", "shop.buy", "shop.pay", "INTACT: this bundle", "/bundle/"+sha256)
	if n := strings.Count(text, ">linked<"); n != 3 {
		t.Errorf("%d rows are linked:\n%s", n, text)
	}
	if text := v.page(chainAddress(sha256)+"&after=2", "3 to 4 of 4", "From the first row"); strings.Contains(text, "not linked") {
		t.Errorf("a row of an intact chain is not linked:\n%s", text)
	}
	v.page(chainAddress(sha256)+"&after=9", "there are 4, and none after row 9")
	code, bytes := v.get("/bundle/" + sha256)
	if code != http.StatusOK || schema.DigestOf([]byte(bytes)).String() != sha256 {
		t.Errorf("the download: %d, %d bytes", code, len(bytes))
	}
	if err := os.WriteFile(file, []byte(bytes[:len(bytes)-1]+"x"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.page(chainAddress(sha256), "was changed since it was sealed")
	if code, text := v.get("/bundle/" + sha256); code != http.StatusConflict || !strings.Contains(text, "was changed since it was sealed") {
		t.Errorf("a changed bundle: %d %s", code, text)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	v.page(chainAddress(sha256), "This console cannot read the file")
	if code, _ := v.get("/bundle/" + sha256); code != http.StatusNotFound {
		t.Errorf("a bundle that is elsewhere: %d", code)
	}
}

// The first row of a page is compared with the last one before the page, as all others are.
func TestFirstRowOfAPageIsCompared(t *testing.T) {
	for hash, want := range map[string]bool{"a": true, "b": false, "": false} {
		p := chainPage{Before: 200, before: "a", Rows: []aivs.Row{{PrevHash: hash}}}
		if got := p.Linked(0); got != want {
			t.Errorf("row 201 names %q, row 200 has %q: linked is %v", hash, "a", got)
		}
	}
}

// A held session says so and why, and of a trace whose card nobody registered that it was not judged; a session that nobody knows does not exist.
func TestHeldAndUnknownSessions(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows, fact{agent: "a", trace: "t-1", session: "s", unknown: true})
	err := r.rows.InsertSessions(t.Context(), []store.Session{{AgentID: "a", SessionID: "s", Version: 1, Status: store.SessionHeld, Reason: "receipt 7 has no row"}})
	if err != nil {
		t.Fatal(err)
	}
	v := r.visitor("")
	v.page(sessionAddress("a", "s", ""), "This session is held", "receipt 7 has no row", `<span class="severity medium">card unknown</span>`)
	if code, text := v.get(sessionAddress("a", "s", "") + "&after=x"); code != http.StatusBadRequest || !strings.Contains(text, "The parameter after is") {
		t.Errorf("a place that no link has: %d %s", code, text)
	}
	v.page(sessionAddress("a", "s", "gone"), "is not stored in this session")
	long := strings.Repeat("x", schema.MaxIDBytes+1)
	for _, path := range []string{"/session", sessionAddress("a", "none", ""), sessionAddress("", "s", ""), sessionAddress(long, long, ""),
		"/chain", chainAddress("x"), chainAddress(strings.Repeat("0", 64)), chainAddress(strings.Repeat("a", 64)), "/bundle/" + strings.Repeat("a", 64)} {
		if code, text := v.get(path); code != http.StatusNotFound || !strings.Contains(text, "There is no ") {
			t.Errorf("%.80s: %d %s", path, code, text)
		}
	}
}

// A long session comes in pages that join without a gap, and a trace's address leads to its page.
func TestPagesOfASession(t *testing.T) {
	r := start(t, nil)
	var facts []fact
	for i := range 120 {
		facts = append(facts, fact{agent: "a", trace: fmt.Sprint("t-", i), session: "s", text: fmt.Sprintf("reason %d.", i), ago: time.Duration(200-i) * time.Second})
	}
	r.put(r.rows, facts...)
	v := r.visitor("")
	seen := 0
	for path := sessionAddress("a", "s", ""); path != ""; {
		text := v.page(path)
		for strings.Contains(text, fmt.Sprintf("reason %d.", seen)) {
			seen++
		}
		_, rest, more := strings.Cut(text, `<p><a href="/session`)
		for more && !strings.Contains(rest[:strings.Index(rest, ">")], "next") {
			_, rest, more = strings.Cut(rest, `<p><a href="/session`)
		}
		path = ""
		if more {
			path = "/session" + strings.ReplaceAll(rest[:strings.Index(rest, `"`)], "&amp;", "&")
		}
	}
	if seen != len(facts) {
		t.Errorf("%d of %d traces are on the pages", seen, len(facts))
	}
	text := v.page(sessionAddress("a", "s", "t-90"), `id="named"`, "reason 90.", "Earlier traces are not on this page", "From the first trace")
	if strings.Contains(text, "reason 89.") {
		t.Error("the page does not begin with the trace")
	}
}

// Sessions, chains and bundles of other agents and tenants do not exist, and chains need a scope.
func TestSessionOfAToken(t *testing.T) {
	dir := t.TempDir()
	r := start(t, func(cfg *Config) { cfg.BundleDir = dir }, "shop-token shop.* traces:read,bundles:read", "plain-token shop.* traces:read")
	neighbour := r.tenant("neighbour")
	r.put(r.rows, fact{agent: "shop.a", trace: "t", session: "s", text: "own reason"}, fact{agent: "other", trace: "t", session: "s", text: "foreign reason"})
	r.put(neighbour, fact{agent: "shop.foreign", trace: "t", session: "s", text: "foreign reason"}, fact{agent: "shop.a", trace: "t-2", session: "s", text: "foreign reason"})
	own, _ := r.bundle(r.rows, dir, "shop.a", "s")
	others, _ := r.bundle(r.rows, dir, "other", "s")
	foreign, _ := r.bundle(neighbour, dir, "shop.foreign", "s")
	reader, plain := r.visitor("shop-token"), r.visitor("plain-token")
	if text := reader.page(sessionAddress("shop.a", "s", ""), "own reason", "/chain?sha256="+own); strings.Contains(text, "foreign") {
		t.Errorf("traces of another tenant:\n%s", text)
	}
	reader.page(chainAddress(own), "1 to 4 of 4")
	for _, path := range []string{sessionAddress("other", "s", ""), sessionAddress("shop.foreign", "s", ""), chainAddress(others), chainAddress(foreign), "/bundle/" + others, "/bundle/" + foreign} {
		if code, text := reader.get(path); code != http.StatusNotFound || strings.Contains(text, "foreign reason") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if text := plain.page(sessionAddress("shop.a", "s", ""), "A token with the scope"); strings.Contains(text, "/chain") {
		t.Errorf("a token without the scope sees a link:\n%s", text)
	}
	for _, path := range []string{chainAddress(own), "/bundle/" + own} {
		if code, text := plain.get(path); code != http.StatusForbidden || !strings.Contains(text, "bundles:read") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// Each sentence about a type is one of docs/FINDINGS.md.
func TestMeaningsAreThoseOfTheDocument(t *testing.T) {
	raw, err := os.ReadFile("../docs/FINDINGS.md")
	if err != nil {
		t.Fatal(err)
	}
	document := strings.NewReplacer("`", "", " ([MESSAGES.md](MESSAGES.md))", "").Replace(string(raw))
	of := readMeanings()
	if len(of) < 35 {
		t.Errorf("%d meanings", len(of))
	}
	for kind, text := range of {
		if !strings.Contains(document, "| "+kind+" | ") || !strings.Contains(document, "| "+text+" |\n") {
			t.Errorf("%s: %q is not in docs/FINDINGS.md", kind, text)
		}
	}
}
