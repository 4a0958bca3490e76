package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mostBytes bounds a page with all that it loads.
const mostBytes = 300_000

// drawn is what drawnPage finds in a page. It is one expression because the fleet's page may load itself again a second later.
type drawn struct {
	Background, Title string
	Weight            int      // bytes of the page and its assets
	Wide              int      // pixels by which the page is wider than the window
	Foreign           []string // elements and attributes that no page of the console has
	Frame             string
	Text              string
}

const drawnPage = `(() => {
  const all = [...document.querySelectorAll("*")];
  const foreign = all.filter((e) => ["IMG", "IFRAME", "STYLE", "OBJECT", "EMBED", "AUDIO", "VIDEO"].includes(e.tagName) || e.tagName === "SCRIPT" && !e.src.startsWith(location.origin + "/assets/")
    || [...e.attributes].some((a) => a.name === "style" || a.name.startsWith("on"))
    || ["href", "src", "action"].some((name) => e[name] && typeof e[name] === "string" && !e[name].startsWith(location.origin + "/")));
  const page = document.documentElement;
  return {
    Background: getComputedStyle(document.body).backgroundColor,
    Title: document.title,
    Weight: performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource").filter((e) => e.initiatorType !== "eventsource")).reduce((sum, e) => sum + e.decodedBodySize, 0),
    Wide: page.scrollWidth - page.clientWidth,
    Foreign: foreign.map((e) => e.outerHTML.slice(0, 200)),
    Frame: [...document.body.children].map((e) => e.tagName).join(" "),
    Text: document.getElementById("main").innerText,
  };
})()`

// checkHarmless checks what holds for every page whatever is on it: no markup and no address that is not the console's, a
// page as wide as the window and below its bound, in its frame.
func checkHarmless(b *tab, path string) drawn {
	b.t.Helper()
	p := evaluate[drawn](b, drawnPage)
	if !strings.HasSuffix(p.Title, "· Plumbline") {
		b.t.Errorf("%.60s: title %q", path, p.Title)
	}
	if len(p.Foreign) > 0 {
		b.t.Errorf("%.60s has %q", path, p.Foreign)
	}
	if p.Frame != "A HEADER MAIN FOOTER DIALOG" {
		b.t.Errorf("%.60s: the frame is %s", path, p.Frame)
	}
	if p.Wide > 0 {
		b.t.Errorf("%.60s is %d pixels wider than the window", path, p.Wide)
	}
	if p.Weight == 0 || p.Weight > mostBytes {
		b.t.Errorf("%.60s: %d bytes", path, p.Weight)
	}
	return p
}

// Every page without data says so, in both themes, and the keys lead from page to page.
func TestEmptyPages(t *testing.T) {
	s := startSite(t)
	b := s.tab()
	backgrounds := map[string]string{}
	for theme, pages := range map[string]map[string]string{"light": {"/": "No trace within 24 hours"}, "dark": {
		"/": "No trace within 24 hours", "/search": "is listed yet", "/search?q=" + url.QueryEscape(hostile): "Nothing has this name", "/problems": "No problem was found", "/tail": "Live",
		"/deadletters": "No dead letter", "/agent?id=nobody": "There is no agent", "/session?agent=nobody&id=none": "There is no session", "/nowhere": "There is no page",
		"/chain?sha256=" + strings.Repeat("a", 64): "There is no bundle", "/deadletter?sha256=" + strings.Repeat("a", 64): "There is no dead letter",
	}} {
		b.theme(theme)
		for path, says := range pages {
			if strings.HasPrefix(says, "There is no ") {
				b.expect("status of 404")
			}
			b.open(s.url + path)
			p := checkHarmless(b, path)
			backgrounds[theme] = p.Background
			if !strings.Contains(p.Text, says) {
				t.Errorf("%.60s does not say %q:\n%s", path, says, p.Text)
			}
		}
	}
	if backgrounds["light"] != "rgb(255, 255, 255)" || backgrounds["dark"] == backgrounds["light"] {
		t.Errorf("backgrounds: %v", backgrounds)
	}
	for _, address := range b.asked() { // beyond its host, which the tab checks
		if u, err := url.Parse(address); err != nil || !slices.Contains([]string{"/", "/search", "/problems", "/tail", "/tail/events", "/deadletters", "/agent", "/session", "/nowhere", "/chain", "/deadletter"}, u.Path) && !strings.HasPrefix(u.Path, "/assets/") {
			t.Errorf("a page asked for %s: %v", address, err)
		}
	}
}

// A script that gets into a page all the same does not run.
func TestForeignScriptIsBlocked(t *testing.T) {
	s := startSite(t)
	b := s.tab()
	b.expect("Content Security Policy")
	b.open(s.url + "/search")
	if !evaluate[bool](b, `(() => { const s = document.createElement("script"); s.textContent = "window.owned = true"; document.body.append(s); return window.owned !== true; })()`) {
		t.Error("the page runs a script that is not the console's")
	}
	answer, err := http.Get(s.url + "/search")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", policy)
	}
}

// The keys of the page "?".
func TestKeys(t *testing.T) {
	s := startSite(t)
	s.judged("shop", "monday", "paper", 3)
	b := s.tab()
	b.theme("dark")
	b.open(s.url + "/problems") // not the fleet's page, which may load itself again
	b.do(chromedp.KeyEvent("t"))
	if theme := evaluate[string](b, `document.documentElement.dataset.theme`); theme != "light" {
		t.Errorf("t chose the theme %q, want light", theme)
	}
	b.do(chromedp.KeyEvent("?"))
	if !evaluate[bool](b, `document.getElementById("help").open`) {
		t.Error("? does not show the keys")
	}
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitReady("#help:not([open])"))
	b.await(`!document.getElementById("help").open && document.activeElement.closest("dialog") === null`) // closing gives the focus back later
	b.do(chromedp.KeyEvent("/"))
	b.await(`document.activeElement.type === "search"`)
	b.do(chromedp.KeyEvent("monday" + kb.Enter))
	b.await(`document.readyState === "complete" && document.querySelector('nav a[aria-current][href="/search"]') !== null`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent("g"), chromedp.KeyEvent("p"))
	b.await(`document.readyState === "complete" && document.querySelector('nav a[aria-current][href="/problems"]') !== null`)
	if background := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`); background != "rgb(255, 255, 255)" {
		t.Errorf("the theme that was chosen does not last: %s", background)
	}
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"))
	if at := evaluate[int](b, `[...document.querySelectorAll("tbody tr")].findIndex((row) => row.classList.contains("at") && row.contains(document.activeElement))`); at != 0 {
		t.Errorf("j, j and k lead to row %d, want 0", at)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.readyState === "complete" && document.querySelector("ol.decisions .named") !== null`)
	b.open(s.url + "/problems") // Tab begins at the named trace of the page before
	b.do(chromedp.KeyEvent(kb.Tab))
	if !evaluate[bool](b, `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Error("the first Tab does not show the link that skips to the page")
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.activeElement.id === "main"`)
}
