package web

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Every page about an agent that writes hostile text wherever it may shows what it is about, as text: in both themes, on a
// desk's width and a phone's, with nothing open and everything open.
func TestPagesOfAHostileAgent(t *testing.T) {
	s := startSite(t)
	agent, session := "did:web:"+hostile, "s "+hostile
	s.registered(agent, hostile)
	s.judged(agent, session, hostile, 20)
	s.drifted(agent, session, hostile)
	bundle, letter := s.sealed(agent, session, hostile), s.refused(agent, hostile)
	s.judged(agent, "held "+hostile, hostile, 1)
	s.held(agent, "held "+hostile, "the exporter met "+hostile)
	of := url.Values{"agent": {agent}, "id": {session}}.Encode()
	pages := []struct {
		path  string
		says  []string
		draws string // elements that must be there
	}{
		{"/", []string{agent, "it does " + hostile, "UNBOUNDED_ACTION"}, ".chart .bar"},
		{"/agent?" + url.Values{"id": {agent}}.Encode(), []string{agent, "it does " + hostile, "what is wrong: " + hostile, session, "former" + hostile}, ".chart.line polyline, .multiples svg, .diff .added"},
		{"/session?" + of, []string{session, "the session misses " + hostile, "what is wrong: " + hostile}, "ol.decisions li, .chosen"},
		{"/session?" + url.Values{"agent": {agent}, "id": {"held " + hostile}}.Encode(), []string{"This session is held", "the exporter met " + hostile}, "ol.decisions li"},
		{"/session?" + of + "&trace=" + url.QueryEscape(s.traces[3].TraceID), []string{session}, "ol.decisions li.named"},
		{"/problems?" + url.Values{"agent": {agent}}.Encode(), []string{"what is wrong: " + hostile, session}, "tbody tr"},
		{"/problems?" + url.Values{"type": {hostile}}.Encode(), []string{"No problem was found for these filters"}, ".filters"},
		{"/search?" + url.Values{"q": {agent}}.Encode(), []string{agent}, "tbody tr"},
		{"/search", []string{agent, session}, "tbody tr"},
		{"/tail?" + url.Values{"agent": {agent}}.Encode(), []string{"Live"}, ".filters"},
		{"/deadletters", []string{agent, "what is wrong: " + hostile}, "tbody tr"},
		{"/deadletter?sha256=" + letter, []string{agent, "what is wrong: " + hostile}, "pre.diff"},
		{"/chain?sha256=" + bundle, []string{"INTACT: this bundle is unchanged", session, "tool.<img src=x onerror="}, "table.chain tr"},
	}
	s.counted("UNBOUNDED_ACTION")
	b := s.tab()
	for _, window := range []struct {
		width int64
		theme string
	}{{1280, "light"}, {390, "dark"}} {
		b.theme(window.theme)
		b.do(chromedp.EmulateViewport(window.width, 900))
		for _, page := range pages {
			b.open(s.url + page.path)
			b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
			p := checkHarmless(b, page.path)
			for _, want := range page.says {
				if !strings.Contains(p.Text, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("%.60s at %d pixels does not say %q:\n%s", page.path, window.width, want, p.Text)
				}
			}
			for element := range strings.SplitSeq(page.draws, ", ") {
				if evaluate[int](b, `document.querySelectorAll("#main `+element+`").length`) == 0 {
					t.Errorf("%.60s has no %s", page.path, element)
				}
			}
		}
	}
}

// On a phone no name breaks within a word, and above each chart of an agent the figures are one line.
func TestNamesAndFiguresFit(t *testing.T) {
	s := startSite(t)
	const agent, session = "did:web:fleet.example:logistics:agent-of-the-night-shift", "night-shift-of-2026-11-28-by-the-northern-warehouse"
	s.registered(agent, "x")
	s.judged(agent, session, strings.Repeat("the parcel is sent by the night train. ", 12), 20)
	s.drifted(agent, session, "x")
	bundle := s.sealed(agent, session, "warehouse.reconcile_account_of_a_supplier")
	of := url.Values{"agent": {agent}, "id": {session}}.Encode()
	b := s.tab()
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 900))
		for _, path := range []string{"/", "/agent?id=" + agent, "/session?" + of, "/problems", "/search", "/chain?sha256=" + bundle} {
			b.open(s.url + path)
			if broken := evaluate[[]string](b, brokenNames("#main h1 bdi, #main .id bdi, #main .chain bdi, #main .facts bdi, #main dd code")); len(broken) > 0 {
				t.Errorf("%s at %d pixels breaks within a word: %q", path, width, broken)
			}
			if lines := evaluate[[]string](b, `[...document.querySelectorAll(".multiples .value")].filter((line) => line.clientHeight > 1.9 * parseFloat(getComputedStyle(line).fontSize)).map((line) => line.innerText)`); len(lines) > 0 {
				t.Errorf("%s at %d pixels has figures on several lines: %q", path, width, lines)
			}
		}
	}
}

// A visitor logs in, sees what the token covers, is told which scope is missing for the rest, and logs out.
func TestTokens(t *testing.T) {
	s := startSite(t, "publisher * traces:write", "reader shop.* traces:read", "auditor * traces:read,bundles:read")
	s.judged("shop.a", "monday", "paper", 2)
	s.judged("other", "tuesday", "paper", 1)
	bundle := s.sealed("shop.a", "monday", "x")
	b := s.tab()
	b.expect("status of 403")
	b.expect("status of 404")
	login := func(token string) {
		b.do(chromedp.WaitReady("#token"))
		b.await(`document.activeElement.id === "token"`)
		b.do(chromedp.KeyEvent(token + "\r"))
	}
	says := func(want string) {
		t.Helper()
		b.await(`document.readyState === "complete" && document.getElementById("main")?.innerText.includes("` + want + `")`)
		checkHarmless(b, want)
	}
	session := "/session?agent=shop.a&id=monday"
	b.do(chromedp.Navigate(s.url + session))
	login("nonsense")
	says("This token is unknown")
	login("publisher")
	says("This token does not have the scope traces:read")
	login("reader")
	says("A token with the scope bundles:read")
	if evaluate[bool](b, `document.cookie !== "" || document.querySelector('a[href^="/chain"]') !== null`) {
		t.Error("a script can read the cookie, or a token without the scope sees a link to the chain")
	}
	b.open(s.url + "/chain?sha256=" + bundle)
	says("bundles:read")
	b.open(s.url + "/session?agent=other&id=tuesday")
	says("There is no session")
	for agent, says := range map[string]string{"shop.a": "Latest trace", "other": "Nothing that your token covers"} {
		b.open(s.url + "/search?q=" + agent)
		if text := checkHarmless(b, agent).Text; !strings.Contains(text, says) {
			t.Errorf("the reader of shop.* searches %s and sees:\n%s", agent, text)
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("form[action='/logout'] button").click()`))
	says("Give a token")
	b.do(chromedp.Navigate(s.url + "/chain?sha256=" + bundle))
	login("auditor")
	says("INTACT: this bundle is unchanged")
}
