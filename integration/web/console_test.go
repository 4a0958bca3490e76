package web

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	console "github.com/plumbline/plumbline/web"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// startConsole serves a console without tokens on an empty database, and returns the addresses of both.
func startConsole(t *testing.T) (at, dsn string) {
	t.Helper()
	if os.Getenv("PLUMBLINE_CHROMIUM") == "" {
		t.Skip("PLUMBLINE_CHROMIUM names no Chromium: run make test-web")
	}
	cfg := console.Default()
	cfg.ClickHouse.DSN = enginetest.Migrated(t, database.Migrate)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := pipelinetest.Env(t, "console")
	pipelinetest.Go(t, func(ctx context.Context) error { return console.ServeOn(ctx, listener, &cfg, env) })
	return "http://" + listener.Addr().String(), cfg.ClickHouse.DSN
}

// drawn is what drawnPage finds in a page. It is one expression because the fleet's page may load itself again a second later.
type drawn struct {
	Background, Title string
	Weight            int // bytes of the page and its assets
	Asked             []string
}

const drawnPage = `(() => {
  const assets = performance.getEntriesByType("resource");
  return {
    Background: getComputedStyle(document.body).backgroundColor,
    Title: document.title,
    Weight: performance.getEntriesByType("navigation").concat(assets).reduce((sum, e) => sum + e.decodedBodySize, 0),
    Asked: assets.map((e) => e.name),
  };
})()`

// Every page is its own style and script and nothing else, light and under its bound, in both themes; the keys lead from
// page to page. A violation of the Content-Security-Policy would be an event of the document.
func TestConsole(t *testing.T) {
	at, _ := startConsole(t)
	tab := browser(t)
	backgrounds := map[string]string{}
	for _, theme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/", "/search", "/search?q=" + "%3Cscript%3Edocument.title%3D%27owned%27%3C%2Fscript%3E", "/agent?id=nobody", "/problems", "/deadletters"} {
			do(t, tab, chromedp.Navigate(at+path), chromedp.WaitReady("#main h1"))
			p := evaluate[drawn](t, tab, drawnPage)
			backgrounds[theme] = p.Background
			if !strings.HasSuffix(p.Title, "· Plumbline") {
				t.Errorf("%s: title %q", path, p.Title)
			}
			if p.Weight == 0 || p.Weight > 300_000 {
				t.Errorf("%s: %d bytes", path, p.Weight)
			}
			for _, address := range p.Asked {
				if !strings.HasPrefix(address, at+"/assets/") {
					t.Errorf("%s asked for %s", path, address)
				}
			}
		}
	}
	if backgrounds["light"] != "rgb(255, 255, 255)" || backgrounds["dark"] == backgrounds["light"] {
		t.Errorf("backgrounds: %v", backgrounds)
	}
	do(t, tab, chromedp.Navigate(at+"/agent?id=nobody"), chromedp.WaitReady("#main h1"), chromedp.KeyEvent("t")) // not the fleet's page, which may load itself again
	if theme := evaluate[string](t, tab, `document.documentElement.dataset.theme`); theme != "light" {
		t.Errorf("t chose the theme %q, want light", theme)
	}
	do(t, tab, chromedp.KeyEvent("?"))
	if !evaluate[bool](t, tab, `document.getElementById("help").open`) {
		t.Error("? does not show the keys")
	}
	do(t, tab, chromedp.KeyEvent(kb.Escape), chromedp.WaitReady("#help:not([open])"), chromedp.KeyEvent("/"))
	if !evaluate[bool](t, tab, `document.activeElement.type === "search"`) {
		t.Error("/ does not lead to the search")
	}
	do(t, tab, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent("g"), chromedp.KeyEvent("s"), chromedp.WaitReady(`nav a[aria-current][href="/search"]`))
	blocked := evaluate[bool](t, tab, `(() => { const s = document.createElement("script"); s.textContent = "window.owned = true"; document.body.append(s); return window.owned !== true; })()`)
	if !blocked {
		t.Error("the page runs a script that is not the console's")
	}
	if left := slices.Sorted(slices.Values(evaluate[[]string](t, tab, `[...document.querySelectorAll("[style], [onclick], style, script:not([src])")].filter((e) => e.textContent !== "window.owned = true").map((e) => e.tagName)`))); len(left) > 0 {
		t.Error(fmt.Sprint("style or script in the page: ", left))
	}
}
