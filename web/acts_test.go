package web

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// acting starts a console that acts through a real ingest with the same tokens.
func acting(t *testing.T, tokens ...string) (*rig, *brokertest.Server) {
	t.Helper()
	r := start(t, nil, tokens...)
	broker, cfg := brokertest.New(t), ingest.Default()
	cfg.NATS.URL, cfg.NATS.MonitorURL, cfg.TokenFile = broker.URL(), broker.MonitorURL(), r.tokens
	cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(t.TempDir(), "handshake.key"), filepath.Join(t.TempDir(), "micro.key")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := pipelinetest.Env(t, "ingest")
	pipelinetest.Go(t, func(ctx context.Context) error { return ingest.ServeOn(ctx, listener, &cfg, env, nil) })
	pipelinetest.Await(t, "ingest", func() bool { return env.Health.Reported().Ready })
	r.server.cfg.IngestURL = "http://" + listener.Addr().String()
	if r.server.letters, err = r.server.open(r.dsn); err != nil {
		t.Fatal(err)
	}
	return r, broker
}

// letter stores a dead letter, and returns the digest of its bytes.
func (r *rig) letter(s *store.Store, agent, text string, received time.Time) string {
	r.t.Helper()
	r.next++
	letter := store.DeadLetter{Stage: "verifier", OriginSequence: r.next, Received: received, RetainUntil: store.RetainUntil(received.Add(90 * 24 * time.Hour)), AgentID: agent, Reason: "invalid_trace", Raw: []byte(text)}
	letter.SetFaults([]schema.Fault{{Pointer: "/x", Message: "fault of " + agent + hostile}, {Message: "another"}})
	if err := s.InsertDeadLetters(r.t.Context(), []store.DeadLetter{letter}); err != nil {
		r.t.Fatal(err)
	}
	return schema.DigestOf([]byte(text)).String()
}

// acts returns what people did, as the stream of the operator's ledger has it: kind, mark and sender.
func acts(t *testing.T, broker *brokertest.Server) (all []string) {
	t.Helper()
	state, err := broker.Connect().StreamState(t.Context(), stream.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range broker.Read(stream.Ledger, "", int(state.LastSequence)) {
		var act struct{ Kind, Mark, By, From, Note string }
		if err := json.Unmarshal(m.Data, &act); err != nil {
			t.Fatal(err)
		}
		if act.By != "" {
			all = append(all, strings.TrimSpace(fmt.Sprint(act.Kind, " ", act.Mark, " ", act.By, " ", act.From, " ", act.Note)))
		}
	}
	return all
}

// trace returns the bytes of a valid trace.
func trace(agent, id string) string {
	return fmt.Sprintf(`{"trace_id":%q,"agent_id":%q,"card_id":"c","timestamp":"2026-01-02T03:04:05Z","action":{"type":"execute","name":"read","category":"bounded","parameters":{"api_key":"hunter2"}},`+
		`"decision":{"alternatives_considered":[{"option_id":"x","description":"d"}],"selected":"x","selection_reasoning":"<script>alert(1)</script>","values_applied":["v"]}}`, id, agent)
}

// A selection of dead letters is replayed with the visitor's own token: what ingest accepts is a trace again and marked,
// the others stay open, and the ledger has each step with the token's name.
func TestReplayOfDeadLetters(t *testing.T) {
	r, broker := acting(t, "ann-token * traces:read,traces:write,dead-letters:write")
	good, bad := r.letter(r.rows, "a", trace("a", "t-1"), time.Now()), r.letter(r.rows, "a", "{", time.Now())
	ann := r.visitor("ann-token")
	text := ann.page("/deadletters", good[:16], bad[:16], "invalid_trace", "and 1 more fault", `<button name="do" value="replay">`)
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "hunter2") {
		t.Errorf("a hostile text or a secret:\n%s", text)
	}
	text = ann.page("/deadletter?sha256="+good, "&lt;script&gt;", "[REDACTED]", "1 secret", fmt.Sprint(len(trace("a", "t-1"))))
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "hunter2") {
		t.Errorf("a hostile text or a secret:\n%s", text)
	}
	ann.page("/deadletter?sha256="+bad, "not JSON")
	form := url.Values{"form": {ann.form("/deadletters")}, "do": {"replay"}, "note": {"the card is there"}, "sha256": {good, bad, strings.Repeat("0", 64), good}}
	code, text := ann.post("/deadletters", form)
	if code != http.StatusOK || strings.Count(text, ">done<") != 1 || strings.Count(text, ">not done<") != 2 || !strings.Contains(text, "accepted") || !strings.Contains(text, "refused; ") || !strings.Contains(text, "There is no dead letter") {
		t.Errorf("replay: %d %s", code, text)
	}
	want := []string{"dead_letters replaying entry-0 console the card is there", "dead_letters replayed entry-0 console the card is there", "dead_letters replaying entry-0 console the card is there"}
	if got := acts(t, broker); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the ledger has %q, want %q", got, want)
	}
	if m := broker.Read(stream.Traces, "", 1)[0]; string(m.Data) != trace("a", "t-1") {
		t.Errorf("the trace is %s", m.Data)
	}
	var marked []string
	for _, m := range broker.Read(stream.DeadLetters, stream.DeadLetterConsumer, 2) { // the bad one is a dead letter again
		if mark, err := wire.ParseMark(m.Data); m.Subject == wire.MarkSubject && err == nil {
			marked = append(marked, mark.Mark+" "+mark.Digest.String())
		}
	}
	if len(marked) != 1 || marked[0] != "replayed "+good {
		t.Errorf("marks %q", marked)
	}
}

// Nobody handles the letters of others, without the scope, or by a form of another session or site.
func TestDeadLettersOfAToken(t *testing.T) {
	r, broker := acting(t, "all-token * traces:read,dead-letters:write", "shop-token shop.* traces:read,dead-letters:write", "plain-token shop.* traces:read", "writes-token * dead-letters:write,traces:write")
	own, others, nobodys := r.letter(r.rows, "shop.a", `{"n":1}`, time.Now()), r.letter(r.rows, "other", `{"n":2}`, time.Now()), r.letter(r.rows, "", `{"n":3}`, time.Now())
	foreign := r.letter(r.tenant("neighbour"), "shop.a", `{"n":4}`, time.Now())
	shop, plain := r.visitor("shop-token"), r.visitor("plain-token")
	for _, v := range []*visitor{shop, plain} {
		text := v.page("/deadletters", own[:16])
		for _, digest := range []string{others, nobodys, foreign} {
			if strings.Contains(text, digest) {
				t.Errorf("letter %s is on the page", digest)
			}
			if code, _ := v.get("/deadletter?sha256=" + digest); code != http.StatusNotFound {
				t.Errorf("letter %s: %d", digest, code)
			}
		}
		if code, _ := v.get("/deadletters?agent=other"); code != http.StatusNotFound {
			t.Errorf("the agent of others: %d", code)
		}
	}
	r.visitor("all-token").page("/deadletters", own, others, nobodys)
	if text := plain.page("/deadletter?sha256="+own, "The bytes are for tokens with the scope dead-letters:write"); strings.Contains(text, "<pre") || strings.Contains(text, `name="do"`) {
		t.Errorf("a token without the scope sees bytes or a form:\n%s", text)
	}
	form := func(v *visitor, digest string) url.Values {
		return url.Values{"form": {v.form("/deadletters")}, "do": {"replay"}, "sha256": {digest}}
	}
	if code, text := plain.post("/deadletters", form(plain, own)); code != http.StatusForbidden || !strings.Contains(text, "dead-letters:write") {
		t.Errorf("without the scope: %d %s", code, text)
	}
	forged := form(shop, own)
	forged.Set("form", "x")
	if code, _ := shop.post("/deadletters", forged); code != http.StatusForbidden {
		t.Errorf("a forged form: %d", code)
	}
	if code, _ := shop.post("/deadletters", form(shop, own), "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("another site: %d", code)
	}
	for _, digest := range []string{others, nobodys, foreign} {
		if code, text := shop.post("/deadletters", form(shop, digest)); code != http.StatusOK || !strings.Contains(text, "There is no dead letter") || strings.Contains(text, ">done<") {
			t.Errorf("letter %s: %d %s", digest, code, text)
		}
	}
	if got := acts(t, broker); len(got) != 0 {
		t.Errorf("the ledger has %q", got)
	}
	// The console's scope is enough to mark; ingest refuses the trace without its own scope, and the letter stays open.
	if code, text := shop.post("/deadletters", form(shop, own)); code != http.StatusOK || !strings.Contains(text, ">not done<") || !strings.Contains(text, "traces:write") {
		t.Errorf("without traces:write: %d %s", code, text)
	}
	long := form(shop, own)
	long.Set("note", strings.Repeat("ж", 600))
	if code, text := shop.post("/deadletters", long); code != http.StatusBadRequest || !strings.Contains(text, "It takes a text of 1000 bytes at most") {
		t.Errorf("a note that is too long: %d %s", code, text)
	}
	resolve := form(shop, own)
	resolve.Set("do", "resolve")
	if code, text := shop.post("/deadletters", resolve); code != http.StatusOK || !strings.Contains(text, ">done<") {
		t.Errorf("resolve: %d %s", code, text)
	}
	if got, want := strings.Join(acts(t, broker), "\n"), "dead_letters replaying entry-1 console\ndead_letters resolved entry-1 console"; got != want {
		t.Errorf("the ledger has %q, want %q", got, want)
	}
}

// The pages of dead letters lose and repeat none, also where many arrived at one moment; handled ones are there on request.
func TestPagesOfDeadLetters(t *testing.T) {
	r := start(t, nil)
	at, digests := time.Now(), map[string]int{}
	for i := range lettersOfPage*2 + 5 {
		digests[r.letter(r.rows, "a", fmt.Sprint(i), at.Add(-time.Duration(i/40)*time.Minute))] = 0
	}
	handled := r.letter(r.rows, "a", "handled", at.Add(-time.Hour))
	if err := r.rows.InsertLetterMarks(t.Context(), []store.LetterMark{{Digest: schema.DigestOf([]byte("handled")), MarkedAt: at, Mark: wire.MarkResolved, MarkedBy: "ann"}}); err != nil {
		t.Fatal(err)
	}
	nobodys := r.letter(r.rows, "a", "nobody's", at.Add(-time.Hour))
	if err := r.rows.InsertLetterMarks(t.Context(), []store.LetterMark{{Digest: schema.DigestOf([]byte("nobody's")), MarkedAt: at, Mark: wire.MarkResolved, MarkedBy: auth.Anyone}}); err != nil {
		t.Fatal(err)
	}
	v := r.visitor("")
	pages := 0
	for path := "/deadletters"; path != "" && pages < 9; pages++ {
		text := v.page(path)
		if strings.Contains(text, handled) || strings.Contains(text, `name="do"`) || strings.Contains(text, ">Bytes<") {
			t.Error("a handled letter, or what this console cannot do")
		}
		for digest := range digests {
			digests[digest] += strings.Count(text, "/deadletter?sha256="+digest)
		}
		path = ""
		if next := regexp.MustCompile(`<a href="([^"]+)" rel="next"`).FindStringSubmatch(text); next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	for digest, seen := range digests {
		if seen != 1 {
			t.Errorf("letter %s is %d times on the pages", digest, seen)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
	v.page("/deadletters?all=1&after="+fmt.Sprint(at.Add(-50*time.Minute).UnixNano())+".0", handled, `resolved <span class="soft">by <bdi>ann</bdi>`, nobodys, `resolved <span class="soft">without a token<`)
	v.page("/deadletter?sha256="+nobodys, "<dd>resolved without a token</dd>")
	if code, text := v.post("/deadletters", url.Values{"form": {r.server.everybody.form}, "do": {"replay"}, "sha256": {handled}}); code != http.StatusForbidden || !strings.Contains(text, "This console only looks") {
		t.Errorf("a replay without ingest: %d %s", code, text)
	}
}

// A session is ended from its page, by a token with the scope and for its own agents; the ledger says who.
func TestEndOfASessionFromItsPage(t *testing.T) {
	r, broker := acting(t, "shop-token shop.* traces:read,sessions:write", "plain-token * traces:read")
	r.put(r.rows, fact{agent: "shop.a", trace: "t", session: "s"}, fact{agent: "other", trace: "t-2", session: "s"})
	shop, plain := r.visitor("shop-token"), r.visitor("plain-token")
	shop.page(sessionAddress("shop.a", "s", ""), "End this session")
	if text := plain.page(sessionAddress("shop.a", "s", "")); strings.Contains(text, "End this session") {
		t.Error("a token without the scope sees the form")
	}
	end := func(v *visitor, agent, session string) (int, string) {
		return v.post("/session/end", url.Values{"form": {v.form("/")}, "agent": {agent}, "id": {session}})
	}
	for what, c := range map[string]struct {
		v              *visitor
		agent, session string
		want           int
	}{"without the scope": {plain, "shop.a", "s", http.StatusForbidden}, "of another agent": {shop, "other", "s", http.StatusNotFound}, "that does not exist": {shop, "shop.a", "x", http.StatusNotFound}} {
		if code, text := end(c.v, c.agent, c.session); code != c.want {
			t.Errorf("%s: %d %s", what, code, text)
		}
	}
	if code, text := end(shop, "shop.a", "s"); code != http.StatusOK || !strings.Contains(text, "was asked for") {
		t.Errorf("%d %s", code, text)
	}
	if got := acts(t, broker); len(got) != 1 || got[0] != "session_end  entry-0 console" {
		t.Errorf("the ledger has %q", got)
	}
	if end, ok := wire.EndOf("shop.a", broker.Read(stream.Traces, "", 1)[0].Data); !ok || end.SessionID != "s" {
		t.Errorf("the request is %+v, %t", end, ok)
	}
	r.server.cfg.IngestURL = "http://127.0.0.1:1"
	if code, text := end(shop, "shop.a", "s"); code != http.StatusServiceUnavailable || !strings.Contains(text, "Repeating it is safe") || strings.Contains(text, "shop-token") {
		t.Errorf("without ingest: %d %s", code, text)
	}
}

// The console's memory has no token that it can read without the visitor's cookie.
func TestTokensAreEncrypted(t *testing.T) {
	s := newSessions(time.Hour)
	cookie, other := s.begin("secret-token"), s.begin("other-token")
	one := s.of(cookie)
	if strings.Contains(fmt.Sprintf("%s %+v", one.sealed, one), "secret-token") {
		t.Error("the token is in the session")
	}
	if token, err := one.tokenOf(cookie); token != "secret-token" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	for _, wrong := range []string{other, "", "x"} {
		if token, err := one.tokenOf(wrong); err == nil {
			t.Errorf("the cookie %q gives %q", wrong, token)
		}
	}
}
