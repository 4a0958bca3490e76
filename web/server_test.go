package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
)

func escaped(text string) string { return url.QueryEscape(text) }

var formValue = regexp.MustCompile(`name="form" value="([^"]+)"`)

// form returns the hidden value of the forms of a page.
func (v *visitor) form(path string) string {
	v.t.Helper()
	found := formValue.FindStringSubmatch(v.page(path))
	if found == nil {
		v.t.Fatalf("%s has no form", path)
	}
	return found[1]
}

// Without a session every page leads to the login, and only a token that may read begins a session.
func TestLogin(t *testing.T) {
	r := start(t, nil, "reader-token * traces:read", "writer-token * traces:write")
	r.put(r.rows, fact{agent: "a", trace: "t", session: "s"})
	stranger := r.visitor("")
	for _, path := range []string{"/", "/agent?id=a", "/nothing"} {
		if text := stranger.page(path); !strings.Contains(text, `<h1>Log in</h1>`) {
			t.Errorf("%s without a session: %s", path, text)
		}
	}
	for _, token := range []string{"", "wrong-token", "writer-token"} {
		if code, text := stranger.post("/login", url.Values{"token": {token}}); code != http.StatusForbidden || strings.Contains(text, "reader-token") {
			t.Errorf("login with %q: %d %s", token, code, text)
		}
	}
	code, text := stranger.post("/login", url.Values{"token": {"writer-token"}})
	if code != http.StatusForbidden || !strings.Contains(text, "does not have the scope traces:read") {
		t.Errorf("login without the scope: %d %s", code, text)
	}
	code, text = stranger.post("/login", url.Values{"token": {"reader-token"}, "next": {"/agent?id=a"}})
	if code != http.StatusOK || !strings.Contains(text, "<h1><bdi>a</bdi></h1>") || strings.Contains(text, "reader-token") {
		t.Errorf("login: %d %s", code, text)
	}
	for _, cookie := range stranger.client.Jar.Cookies(parsed(t, r.url)) {
		if strings.Contains(cookie.Value, "reader-token") {
			t.Errorf("the cookie %s has the token", cookie.Name)
		}
	}
	form := stranger.form("/")
	if _, text := stranger.post("/logout", url.Values{"form": {"x"}}); strings.Contains(stranger.page("/"), "<h1>Log in") {
		t.Errorf("a forged form ended the session: %s", text)
	}
	stranger.post("/logout", url.Values{"form": {form}})
	if text := stranger.page("/"); !strings.Contains(text, "<h1>Log in") {
		t.Errorf("after the logout: %s", text)
	}
}

// The session's cookie cannot be read by scripts, and no other site's request has it.
func TestCookie(t *testing.T) {
	r := start(t, nil, "reader-token * traces:read")
	v := r.visitor("")
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := v.client.PostForm(r.url+"/login", url.Values{"token": {"reader-token"}, "next": {"//evil.example/"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if c := answer.Header.Get("Set-Cookie"); !strings.Contains(c, "; HttpOnly") || !strings.Contains(c, "; SameSite=Strict") || !strings.Contains(c, "; Path=/") {
		t.Errorf("cookie %q", c)
	}
	if to := answer.Header.Get("Location"); to != "/" {
		t.Errorf("login leads to %q", to)
	}
}

// A page of another site can neither log anybody in nor post anything.
func TestOtherSites(t *testing.T) {
	r := start(t, nil, "reader-token * traces:read")
	v := r.visitor("reader-token")
	form := v.form("/")
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		for path, values := range map[string]url.Values{"/login": {"token": {"reader-token"}}, "/logout": {"form": {form}}} {
			if code, text := v.post(path, values, headers...); code != http.StatusForbidden {
				t.Errorf("%s with %v: %d %s", path, headers, code, text)
			}
		}
	}
	v.page("/", "<h1>Fleet")
	// A link on another site opens the page: the browser sends no cookie with it, and is asked to load it again.
	stranger := r.visitor("")
	if code, text := stranger.get("/agent?id=a", "Sec-Fetch-Site", "cross-site"); code != http.StatusOK || strings.Contains(text, "Log in") {
		t.Errorf("a link on another site: %d %s", code, text)
	}
}

// Where no token is needed, a name that somebody else pointed at this machine gets nothing.
func TestOpenConsoleAnswersThisMachineOnly(t *testing.T) {
	v := start(t, nil).visitor("")
	v.page("/", "<h1>Fleet")
	if code, text := v.get("/", "Host", "evil.example"); code != http.StatusForbidden || strings.Contains(text, "Fleet") {
		t.Errorf("%d %s", code, text)
	}
}

// A token that is revoked ends its sessions at once, and the time of a session ends it.
func TestEndOfASession(t *testing.T) {
	r := start(t, nil, "reader-token * traces:read", "other-token * traces:read")
	v := r.visitor("reader-token")
	v.page("/", "<h1>Fleet")
	if err := (auth.TokenFile{Path: r.tokens}).Revoke(t.Context(), "entry-0"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(v.page("/"), "<h1>Log in") {
		if time.Now().After(deadline) {
			t.Fatal("the session outlives its token")
		}
	}
	s := newSessions(time.Hour)
	cookie := s.begin("x")
	if s.of(cookie) == nil || s.of("x") != nil {
		t.Error("a session is not found by its cookie alone")
	}
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	if s.of(cookie) != nil {
		t.Error("a session outlives its time")
	}
}

// Every answer forbids what no page of the console does.
func TestHeaders(t *testing.T) {
	r := start(t, nil)
	for _, path := range []string{"/", "/nothing", "/agent"} {
		answer, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || answer.Header.Get("Cache-Control") != "private, no-store" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
}

// A database that is away costs the page, which says so and what to do.
func TestWithoutADatabase(t *testing.T) {
	r := start(t, func(cfg *Config) { cfg.ClickHouse.DSN = "clickhouse://nobody@127.0.0.1:1/none" })
	if code, text := r.visitor("").get("/"); code != http.StatusServiceUnavailable || !strings.Contains(text, "Publishing is not affected") || strings.Contains(text, "127.0.0.1:1") {
		t.Errorf("%d %s", code, text)
	}
}

// The assets are cached for good under names of their content, and pages name them.
func TestAssets(t *testing.T) {
	r := start(t, nil)
	found := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(r.visitor("").page("/"), -1)
	if len(found) < 3 {
		t.Fatalf("%d assets", len(found))
	}
	for _, asset := range found {
		answer, err := http.Get(r.url + asset[1])
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", asset[1], answer.StatusCode, answer.Header)
		}
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
