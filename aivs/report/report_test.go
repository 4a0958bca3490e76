package report_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/report"
)

func key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
}

// session is a session to be sealed.
type session struct {
	traces   []string // JSON
	verdicts []string
	verdict  string // on the session
	card     string
	last     bool
	change   func(i int, r *aivs.Row) // changes a row before it is sealed, if it is not nil
}

func (s *session) sealed(t testing.TB, signer ed25519.PrivateKey) []byte {
	t.Helper()
	var rows []aivs.Row
	for i, trace := range s.traces {
		var fields struct {
			TraceID   string          `json:"trace_id"`
			CardID    json.RawMessage `json:"card_id"`
			Timestamp time.Time       `json:"timestamp"`
			Action    struct {
				Type, Name string
				Parameters json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(trace), &fields); err != nil {
			t.Fatalf("%s: %v", trace, err)
		}
		sum := sha256.Sum256([]byte(trace))
		id, err := json.Marshal(fields.TraceID)
		if err != nil {
			t.Fatal(err)
		}
		if fields.Action.Parameters == nil {
			fields.Action.Parameters = json.RawMessage("{}")
		}
		inputs := fmt.Sprintf(`{"trace_id":%s,"trace_sha256":"%x","inputs":%s}`, id, sum, fields.Action.Parameters)
		if fields.CardID != nil {
			inputs = fmt.Sprintf(`{"trace_id":%s,"card_id":%s,"trace_sha256":"%x","inputs":%s}`, id, fields.CardID, sum, fields.Action.Parameters)
		}
		rows = append(rows, aivs.Row{ActionType: "aap." + fields.Action.Type, ToolName: "aap." + fields.Action.Name, OutputsJSON: "{}", InputsJSON: inputs, Timestamp: aivs.UnixSeconds(fields.Timestamp)})
		if s.change != nil {
			s.change(i, &rows[i])
		}
	}
	lines := func(all []string) []byte {
		var b strings.Builder
		for _, line := range all {
			b.WriteString(line + "\n")
		}
		return []byte(b.String())
	}
	in := &aivs.Input{SessionID: "order-4711", AgentID: "did:web:shop.example", ExportedAt: 1772431200, Part: 1, LastPart: s.last, TraceCount: int64(len(rows)),
		Redactions: 2, Rows: aivs.SliceRows(rows), Generator: "Plumbline", GeneratorURL: "https://example.org",
		Members: []aivs.Member{{Name: aivs.TracesMember, Data: lines(s.traces)}, {Name: aivs.VerdictsMember, Data: lines(s.verdicts)}}}
	if s.verdict != "" {
		in.Members = append(in.Members, aivs.Member{Name: aivs.SessionMember, Data: []byte(s.verdict + "\n")})
	}
	if s.card != "" {
		in.Members = append(in.Members, aivs.Member{Name: "cards/ac-1.json", Data: []byte(s.card)})
	}
	bundle, err := aivs.Build(in, signer)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Bytes
}

// ascii returns JSON text with every other character escaped.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func jsonText(t testing.TB, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return ascii(string(b))
}

// trace returns a decision to do something, with these texts in it.
func trace(t testing.TB, id, kind, name, reasoning, more string) string {
	return `{"trace_id":` + jsonText(t, id) + `,"agent_id":"did:web:shop.example","card_id":"ac-1","timestamp":"2026-03-01T06:00:00.5Z",` +
		`"action":{"type":"` + kind + `","name":` + jsonText(t, name) + `,"category":"bounded","parameters":{"n":1}},` +
		`"decision":{"alternatives_considered":[{"option_id":"a","description":` + jsonText(t, "Buy it: "+reasoning) + `,"score":0.9},{"option_id":"b","description":"Do nothing","score":0.1}],` +
		`"selected":"a","selection_reasoning":` + jsonText(t, reasoning) + `,"values_applied":["honesty"],"confidence":0.75}` + more +
		`,"context":{"session_id":"order-4711","metadata":{}}}`
}

const card = `{"aap_version":"0.1.0","card_id":"ac-1","agent_id":"did:web:shop.example","issued_at":"2026-01-01T00:00:00Z","expires_at":"2027-01-01T00:00:00Z",` +
	`"principal":{"type":"human","identifier":"jane@example.org","relationship":"delegated_authority","escalation_contact":"mailto:jane@example.org"},` +
	`"values":{"declared":["honesty"]},"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[{"condition":"amount > 100","action":"escalate","reason":"much"}],"forbidden_actions":["sell_data"]},` +
	`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":365,"queryable":false}}`

// shop is a session with an answered escalation, a forbidden action and a finding of the session.
func shop(t testing.TB) *session {
	const escalated = `,"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"amount > 100","matched":true}],"required":true,"reason":"The price is above 100","escalation_id":"esc-1",` +
		`"escalation_status":"approved","principal_response":{"decision":"approved","timestamp":"2026-03-01T06:00:00Z","conditions":["amount <= 150"]}}`
	return &session{last: true, card: card,
		traces: []string{
			trace(t, "tr-1", "execute", "search", "Cheapest offer with good reviews", ""),
			strings.Replace(trace(t, "tr-2", "execute", "purchase", "Jane approved it", escalated), "06:00:00.5Z", "06:00:01.5Z", 1),
			strings.Replace(trace(t, "tr-3", "execute", "sell_data", "The buyer pays well", ""), "06:00:00.5Z", "06:00:02.5Z", 1),
		},
		verdicts: []string{
			`{"verified":true,"status":"judged","recommended_action":"proceed","trace_id":"tr-1","violations":[],"warnings":[],"findings":[]}`,
			`{"verified":true,"status":"judged","recommended_action":"review","trace_id":"tr-2","violations":[],"warnings":[{"type":"near_boundary","description":"confidence 0.3"}],"findings":[]}`,
			`{"verified":false,"status":"judged","recommended_action":"deny","trace_id":"tr-3","violations":[{"type":"FORBIDDEN_ACTION","severity":"CRITICAL","description":"sell_data is forbidden","trace_field":"action.name"}],"warnings":[],"findings":[]}`,
		},
		verdict: `{"verified":false,"recommended_action":"deny","traces":{"total":3,"verified":2,"card_unknown":0,"violations":{"FORBIDDEN_ACTION":1},"findings":{}},` +
			`"findings":[{"type":"TRACE_ORDER","severity":"MEDIUM","description":"a circle","trace_id":"tr-3"}],"finding_counts":{"TRACE_ORDER":1},"verification_metadata":{"unchecked":[]}}`,
	}
}

// page returns the page about a bundle, and its text without markup.
func page(t testing.TB, bundle []byte, full int, keys ...ed25519.PublicKey) (markup, text string) {
	t.Helper()
	var contents report.Contents
	verified, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{Keys: keys, Row: contents.Row, File: contents.File})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := report.Page{File: "bundle.tar.gz", Report: verified, Contents: &contents, Full: full}
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), textOf(out.String())
}

var (
	styles = regexp.MustCompile(`(?s)<style>.*?</style>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

func textOf(markup string) string {
	return blanks.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(styles.ReplaceAllString(markup, ""), " ")), " ")
}

func wants(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// The page says who, when, what was decided and why, the verdicts in plain words with the
// specification's name, what is proven by which check, what is not, and how to check it again.
func TestPageOfASession(t *testing.T) {
	public := key().Public().(ed25519.PublicKey)
	bundle := shop(t).sealed(t, key())
	markup, text := page(t, bundle, 0, public)
	sum := sha256.Sum256(bundle)
	wants(t, text,
		"INTACT: this bundle is unchanged since it was signed. It says nothing about whether the agent behaved well.",
		"Verdict recorded inside: DENY (1 violation, 1 finding).",
		"Agent did:web:shop.example", "jane@example.org a person; the agent acts with delegated authority", "Session order-4711", hex.EncodeToString(public),
		"2026-03-01 06:00:00.5 UTC", "Sealed, by the operator's clock 2026-03-02 06:00:00 UTC",
		"The agent did purchase", "Buy it: Jane approved it 0.9 chosen", "b Do nothing 0.1", "Why, in the agent's words: Jane approved it", "By the values: honesty · confidence 0.75",
		"The price is above 100", "Answer approved, as the agent reports it", "amount <= 150",
		"The agent did something that its card forbids. (critical violation, [FORBIDDEN_ACTION] )", "sell_data is forbidden",
		"The records contradict each other about which came first. (moderate finding, [TRACE_ORDER] , on the record tr-3 )", "The agent was not confident. (warning, [near_boundary] )",
		"It must ask first, or refuse, if amount > 100 (escalate)", "It must not sell_data",
		"no row of the log was changed, added, removed or moved. hash chain: 5 rows, each linked to the one before signature: Ed25519, by",
		"The key that signed is the one that was expected when this page was made, or one that it leads to. who signed:",
		"AAP does NOT ensure alignment—it provides visibility.", "Tested on transformer-based agents", "Completeness: the agent did not number all of its records", "Hidden values: the operator counts 2 replacements of values by [REDACTED] before the file was sealed. Nothing shows that the same values are in no other part of it.", "Part of the session, as the operator states all of it",
		hex.EncodeToString(sum[:]), "python3 -I session_proof/verify.py --key PUBLIC_KEY", "plumbline bundle verify bundle.tar.gz --key PUBLIC_KEY")
	if again, _ := page(t, bundle, 0, public); again != markup {
		t.Error("the same bundle gave two pages")
	}
	if !strings.Contains(markup, `<div class="banner good"`) {
		t.Error("an intact bundle by the expected key is not good")
	}
	if !strings.Contains(markup, `<div class="banner bad"><p>The agent</p><p>Verdict recorded inside: DENY`) {
		t.Error("a DENY is not shown as bad")
	}
	markup, text = page(t, bundle, 0)
	wants(t, text, "whose key that is was NOT checked", "NOT CHECKED: who signed. Get the operator's public key by another way", "--key PUBLIC_KEY")
	if strings.Contains(markup, `<div class="banner good"`) || strings.Contains(text, "The key that signed is the one that was expected") {
		t.Error("without a key the page says that the signer is known")
	}
	markup, text = page(t, shop(t).sealed(t, nil), 0)
	wants(t, text, "INTACT, NOT SIGNED: ", "nobody: the file is not signed", "Since nobody signed it, this shows no more")
	if strings.Contains(markup, `<div class="banner good"`) || strings.Contains(text, "Since the file was signed") {
		t.Error("the page takes an unsigned bundle for a signed one")
	}
}

var writeBundle = flag.String("write-bundle", "", "write the session of these tests to this file, as docs/report.png shows it")

// TestWriteBundle writes the bundle whose page is in the documents.
func TestWriteBundle(t *testing.T) {
	if *writeBundle == "" {
		return
	}
	if err := os.WriteFile(*writeBundle, shop(t).sealed(t, key()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The page of a bundle that is not intact says so first, names the row, and shows nothing of the
// contents.
func TestPageOfAChangedBundle(t *testing.T) {
	content := aivstest.Gunzip(t, shop(t).sealed(t, key()))
	changed := aivstest.Gzip(t, bytes.Replace(content, []byte(`\"trace_id\":\"tr-2\"`), []byte(`\"trace_id\":\"tr-9\"`), 1))
	markup, text := page(t, changed, 0)
	wants(t, text, "NOT INTACT: do not rely on this bundle.", "Verdict recorded inside: not read, since the bundle is not intact.",
		"row 3 changed: its inputs_json is not that of its trace, line 2 of traces.jsonl", "The contents of the file are not shown", "The file says of itself that it is of session order-4711")
	body := markup[strings.Index(markup, "<body>"):]
	if strings.Contains(body, "banner good") {
		t.Error("something about a changed bundle is shown as good")
	}
	if first := strings.Index(body, "NOT INTACT"); first < 0 || first > 200 || !strings.Contains(body[:first], `class="banner bad"`) {
		t.Error("the page does not begin with the banner")
	}
	for _, content := range []string{"Jane approved it", "FORBIDDEN_ACTION", "What is proven", "DENY", "Buy it"} {
		if strings.Contains(text, content) {
			t.Errorf("the page of a changed bundle shows %q", content)
		}
	}
}

// No text of a bundle becomes markup, is loaded, or controls how the page is shown.
func TestHostileTextsAreHarmless(t *testing.T) {
	const hostile = "</span></style><script>alert(1)</script><img src=x onerror=alert(1)> \"'><a href=javascript:alert(1)>x</a> {{.Style}} \u202egnp.exe \x1b[2J \u2028 <!--"
	s := &session{last: true, card: strings.ReplaceAll(card, "jane@example.org", "</script><script>x()</script>")}
	more := `,"escalation":{"evaluated":true,"triggers_checked":[],"required":true,"reason":` + jsonText(t, hostile) + `,"escalation_id":` + jsonText(t, hostile) +
		`,"escalation_status":"denied","principal_response":{"decision":` + jsonText(t, hostile) + `,"conditions":[` + jsonText(t, hostile) + `]}}`
	s.traces = []string{trace(t, hostile, "execute", hostile, hostile, more)}
	one := `{"type":` + jsonText(t, hostile) + `,"severity":` + jsonText(t, hostile) + `,"description":` + jsonText(t, hostile) + `,"trace_id":` + jsonText(t, hostile) + `}`
	s.verdicts = []string{`{"verified":false,"status":"judged","trace_id":` + jsonText(t, hostile) + `,"violations":[` + one + `],"findings":[` + one + `],"warnings":[` + one + `]}`}
	s.verdict = `{"verified":false,"recommended_action":"deny","traces":{"total":1,"violations":{` + jsonText(t, hostile) + `:1},"findings":{}},"findings":[` + one + `],"finding_counts":{` + jsonText(t, hostile) + `:1},` +
		`"verification_metadata":{"unchecked":[` + jsonText(t, hostile) + `]}}`
	bundle := s.sealed(t, key())
	for name, bundle := range map[string][]byte{"intact": bundle, "changed": aivstest.Gzip(t, bytes.Replace(aivstest.Gunzip(t, bundle), []byte(`"violations":[{`), []byte(`"violations":[{ `), 1))} {
		markup, text := page(t, bundle, 0)
		if name == "intact" {
			wants(t, text, "alert(1)", "⟨U+202E⟩gnp.exe", "⟨U+001B⟩[2J")
		}
		allowed := []string{"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "div", "p", "section", "table", "thead", "tr", "th", "td", "span", "article", "ul", "li", "pre", "code", "strong", "footer"}
		for _, m := range regexp.MustCompile(`<([!/]?)([A-Za-z0-9]*)([^>]*)>`).FindAllStringSubmatch(styles.ReplaceAllString(markup, "<style></style>"), -1) {
			if m[1] == "!" && m[2] == "DOCTYPE" {
				continue
			}
			if !slices.Contains(allowed, m[2]) || regexp.MustCompile(`(?i)\bon\w+=|href|src=`).MatchString(m[3]) {
				t.Errorf("%s: the page has the tag %s", name, m[0])
			}
		}
		if i := strings.IndexFunc(markup, func(r rune) bool { return r == '\u202e' || r == '\x1b' || r == '\u2028' }); i >= 0 {
			t.Errorf("%s: a control character at %d", name, i)
		}
	}
}

// The policy in the page permits its one style and nothing else.
func TestPolicyOfThePage(t *testing.T) {
	markup, _ := page(t, shop(t).sealed(t, key()), 0)
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(markup)
	sum := sha256.Sum256([]byte(style[1]))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	if !strings.Contains(html.UnescapeString(markup), `http-equiv="Content-Security-Policy" content="`+policy+`"`) {
		t.Errorf("the page has another policy than %s", policy)
	}
	digest := sha256.Sum256(shop(t).sealed(t, key()))
	for _, want := range []string{"content: \"SHA-256 of the file " + hex.EncodeToString(digest[:]) + "\"", "counter(page)", "@media print", "prefers-color-scheme: dark", "color-scheme: light dark"} {
		if !strings.Contains(style[1], want) {
			t.Errorf("the style has no %s", want)
		}
	}
	if regexp.MustCompile(`(?i)<script|http://|https://|url\(|@import`).MatchString(markup) {
		t.Error("the page has a script or an address")
	}
}

// Of many decisions, the most severe and the first ones are shown in full. Each run of the others is
// one line, so no decision is missing from the page.
func TestPageOfManyDecisions(t *testing.T) {
	const n = 10_000
	s := &session{last: true}
	for i := range n {
		id := fmt.Sprint("tr-", i)
		s.traces = append(s.traces, trace(t, id, "execute", []string{"search", "buy"}[i%2], strings.Repeat("because ", 60), ""))
		violations := ""
		switch i {
		case 7000:
			violations = `{"type":"FORBIDDEN_ACTION","severity":"CRITICAL","description":"no"}`
		case 8000, 8001:
			violations = `{"type":"UNDECLARED_VALUE","severity":"MEDIUM","description":"no"}`
		}
		s.verdicts = append(s.verdicts, `{"verified":true,"status":"judged","trace_id":"`+id+`","violations":[`+violations+`],"findings":[],"warnings":[]}`)
	}
	bundle := s.sealed(t, key())
	markup, text := page(t, bundle, 50)
	wants(t, text, "10,000 decisions, in the order of the log, with its row numbers.", "Of 10,000 decisions, 50 are shown in full", "All of them were verified.",
		"Row 7002.", "Row 8002.", "Row 8003.", "Row 2.", "Row 48.", "Rows 49 to 7001 are not shown in full: 6,953 decisions. Actions: buy (3477), search (3476). None of them has a violation or a finding.")
	if strings.Contains(text, "Row 49.") || len(markup) > 300_000 {
		t.Errorf("the page has %d bytes", len(markup))
	}
	if whole, _ := page(t, bundle, report.DefaultFull); len(whole) > 1<<20 {
		t.Errorf("by default the page has %d bytes", len(whole))
	}
	shown, hidden := strings.Count(markup, "<h3>Row "), 0
	for _, m := range regexp.MustCompile(`not shown in full: ([0-9,]+) decisions`).FindAllStringSubmatch(text, -1) {
		var k int
		if _, err := fmt.Sscan(strings.ReplaceAll(m[1], ",", ""), &k); err != nil {
			t.Fatal(err)
		}
		hidden += k
	}
	if shown != 50 || shown+hidden != n {
		t.Errorf("%d decisions are shown, %d counted", shown, hidden)
	}
}

// If more decisions have violations than the page shows in full, the gravest are shown, and the
// lines that stand for the others count their violations.
func TestGravestDecisionsComeFirst(t *testing.T) {
	s := &session{last: true}
	for i := range 40 {
		id := fmt.Sprint("tr-", i)
		s.traces = append(s.traces, trace(t, id, "execute", "search", "r", ""))
		severity := []string{"MEDIUM", "CRITICAL"}[i/39]
		s.verdicts = append(s.verdicts, `{"verified":false,"status":"judged","trace_id":"`+id+`","violations":[{"type":"UNDECLARED_VALUE","severity":"`+severity+`","description":"no"}],"findings":[],"warnings":[]}`)
	}
	_, text := page(t, s.sealed(t, key()), 8)
	wants(t, text, "Row 41.", "Row 2.", "Row 8.", "Rows 9 to 40 are not shown in full: 32 decisions.", "Violations and findings among them: UNDECLARED_VALUE (32).")
}

// verify.py, the tool and the page say the same of every published bundle, whole or damaged.
func TestPythonAndThePageSayTheSame(t *testing.T) {
	files, err := filepath.Glob("../../docs/vectors/bundles/*.tar.gz")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d bundles, %v", len(files), err)
	}
	said, damaged := verifyPy(t, files), 0
	for i, file := range files {
		bundle, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, text := page(t, bundle, 0)
		if strings.Contains(text, " archive ") && strings.Contains(text, "after it was made") || strings.Contains(text, "same name") {
			continue // verify.py does not see the archive
		}
		for line := range strings.SplitSeq(said[i], "\n") {
			line = html.UnescapeString(strings.ReplaceAll(line, "ensure alignment - it", "ensure alignment—it"))
			switch {
			case strings.HasPrefix(line, "FAIL  "):
				damaged++
				where, what, _ := strings.Cut(strings.TrimPrefix(line, "FAIL  "), ": ")
				line = where + " " + what
			case strings.HasPrefix(line, "PASS  "):
				if line = strings.TrimPrefix(line, "PASS  "); strings.Contains(text, "NOT INTACT: ") || strings.HasPrefix(line, "manifest: ") || strings.HasPrefix(line, "files: ") && !strings.Contains(text, "Since the file was signed") {
					continue // of a bundle that is not intact nothing is called proven
				}
			case strings.HasPrefix(line, "      "): // a detail, in Python's own words
				continue
			case strings.HasPrefix(line, "  "):
				line = strings.TrimSpace(line)
			case strings.HasPrefix(line, "SKIP  "):
				line = strings.TrimPrefix(line, "SKIP  ")
			case strings.HasPrefix(line, "INTACT"), strings.HasPrefix(line, "NOT "), strings.HasPrefix(line, "Verdict "):
			default:
				continue
			}
			if line = blanks.ReplaceAllString(line, " "); !strings.Contains(text, line) && !strings.HasPrefix(line, "Not proven") {
				t.Errorf("%s: the page does not say %q\n%s", filepath.Base(file), line, text)
			}
		}
	}
	if damaged < 10 {
		t.Errorf("verify.py reported %d faults", damaged)
	}
}

// verifyPy returns the output of verify.py for each bundle. One interpreter runs it for all of them.
func verifyPy(t testing.TB, files []string) []string {
	t.Helper()
	const each = "import importlib.util, sys\n" +
		"spec = importlib.util.spec_from_file_location('verify', sys.argv[1])\n" +
		"verify = importlib.util.module_from_spec(spec)\nsys.dont_write_bytecode = True\nspec.loader.exec_module(verify)\n" +
		"for directory in sys.argv[2:]:\n    verify.run([directory])\n    print('=== next')\n"
	arguments := []string{"-I", "-c", each, "../verify.py"}
	place := t.TempDir()
	for _, file := range files {
		directory := filepath.Join(place, filepath.Base(file))
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("tar", "xzf", file, "-C", directory).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", file, err, out)
		}
		arguments = append(arguments, filepath.Join(directory, "session_proof"))
	}
	out, err := exec.Command("python3", arguments...).CombinedOutput()
	said := strings.Split(string(out), "=== next\n")
	if err != nil || len(said) != len(files)+1 {
		t.Fatalf("%d bundles, %d outputs, %v\n%s", len(files), len(said)-1, err, out)
	}
	return said
}
