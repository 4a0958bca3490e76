// Package web tests the pages that people look at, in a real browser: headless Chromium, driven by chromedp. make test-web
// installs it from Debian's packages and runs the tests; elsewhere PLUMBLINE_CHROMIUM names the program.
package web

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/viewer"
)

const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"'` + "\u202e"

// browser starts Chromium with one tab.
func browser(t *testing.T) (tab context.Context) {
	t.Helper()
	program := os.Getenv("PLUMBLINE_CHROMIUM")
	if program == "" {
		t.Skip("PLUMBLINE_CHROMIUM names no Chromium: run make test-web")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	started, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(started)
	t.Cleanup(closeTab)
	return tab
}

func do(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

// evaluate returns the value of a JavaScript expression in the page.
func evaluate[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// openViewer writes the page to a file and opens it, as an auditor does.
func openViewer(t *testing.T, tab context.Context) {
	t.Helper()
	page, err := viewer.Page(aivs.Verifiers())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "viewer.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, tab, chromedp.Navigate("file://"+file), chromedp.WaitReady("#files"))
}

// give gives one bundle to the page, and returns what the two banners say.
func give(t *testing.T, tab context.Context, bundle []byte, key string) (file, agent string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(path, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, tab, chromedp.Reload(), chromedp.WaitReady("#files"))
	if key != "" {
		do(t, tab, chromedp.SetValue("#key", key))
	}
	do(t, tab, chromedp.SetUploadFiles("#files", []string{path}), chromedp.WaitReady("#results section"))
	banner := func(n int) string {
		return evaluate[string](t, tab, fmt.Sprintf(`document.querySelectorAll("#results section .banner")[%d]?.children[1].textContent ?? ""`, n))
	}
	return banner(0), banner(1)
}

func testKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// bundleOf builds a bundle of actions with this text in every place that an agent's text reaches.
func bundleOf(t *testing.T, text string, actions int) []byte {
	t.Helper()
	rows := iter.Seq2[*aivs.Row, error](func(yield func(*aivs.Row, error) bool) {
		for i := range actions {
			row := &aivs.Row{ActionType: "aap." + text, ToolName: fmt.Sprintf("tool.%s%d", text, i), InputsJSON: "{}", OutputsJSON: "{}", Error: text, Timestamp: float64(1000 + i)}
			if !yield(row, nil) {
				return
			}
		}
	})
	var made strings.Builder
	in := &aivs.Input{SessionID: "session " + text, AgentID: "agent " + text, ExportedAt: 2000, Part: 1, LastPart: true, TraceCount: int64(actions),
		Generator: "Plumbline", GeneratorURL: "https://example.org", Rows: rows}
	if _, err := aivs.Write(&made, in, testKey()); err != nil {
		t.Fatal(err)
	}
	return []byte(made.String())
}

// An auditor gives the page a bundle, the operator's key, and another key.
func TestViewerJudgesABundle(t *testing.T) {
	tab := browser(t)
	openViewer(t, tab)
	bundle, key := bundleOf(t, "x", 3), hex.EncodeToString(testKey().Public().(ed25519.PublicKey))
	for name, c := range map[string]struct {
		bundle    []byte
		key, want string
	}{
		"no key":      {bundle, "", "INTACT: this bundle is unchanged since it was signed. It says nothing about whether the agent behaved well."},
		"its key":     {bundle, key, "INTACT: this bundle is unchanged since it was signed. It says nothing about whether the agent behaved well."},
		"another key": {bundle, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "NOT INTACT: do not rely on this bundle."},
		"twice":       {append(slices.Clone(bundle), bundle...), key, "NOT INTACT: do not rely on this bundle."},
		"no bundle":   {[]byte("not a bundle, but long enough to be one"), key, "NOT INTACT: do not rely on this bundle."},
	} {
		if file, agent := give(t, tab, c.bundle, c.key); file != c.want || !strings.HasPrefix(agent, "Verdict recorded inside: no") {
			t.Errorf("%s: the page says %q and %q", name, file, agent)
		}
	}
	for _, address := range evaluate[[]string](t, tab, `performance.getEntriesByType("resource").map((r) => r.name)`) {
		t.Errorf("the page asked for %s", address)
	}
}

// The page in a browser gives the answers of Go, with the row at fault in red.
func TestViewerAgreesOnTamperedBundles(t *testing.T) {
	tab := browser(t)
	tampered, err := filepath.Glob("../../../shared/conformance/aivs/tampered/*.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(tampered) == 0 {
		t.Skip("no ../shared/conformance/aivs/tampered: the recorded tampered bundles are not here")
	}
	openViewer(t, tab)
	for _, path := range tampered {
		bundle, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := aivs.Verify(strings.NewReader(string(bundle)), aivs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if file, _ := give(t, tab, bundle, ""); strings.HasPrefix(file, "INTACT") != report.Intact {
			t.Errorf("%s: the page says %q, Go %+v", filepath.Base(path), file, report.Faults)
		}
		red := evaluate[int](t, tab, `document.querySelectorAll("table.chain tr.bad").length`)
		if named := len(report.Faults) > 0 && strings.HasPrefix(report.Faults[0].Where, "row"); named != (red > 0) {
			t.Errorf("%s: %d red rows, Go names %+v", filepath.Base(path), red, report.Faults)
		}
	}
}

// Whatever an agent or a forger writes stays text.
func TestViewerShowsHostileTextAsText(t *testing.T) {
	tab := browser(t)
	openViewer(t, tab)
	file, _ := give(t, tab, bundleOf(t, hostile, 2), "")
	title, made := evaluate[string](t, tab, "document.title"), evaluate[int](t, tab, `document.querySelectorAll("#results img, #results script").length`)
	if title != "Verify a bundle · Plumbline" || made != 0 {
		t.Errorf("title %q, %d elements made of the bundle's text", title, made)
	}
	if !strings.HasPrefix(file, "INTACT") {
		t.Errorf("the page says %q", file)
	}
}

// Both themes differ, and the page is used with the keyboard alone.
func TestViewerThemesAndKeyboard(t *testing.T) {
	tab := browser(t)
	openViewer(t, tab)
	background := map[string]string{}
	for _, theme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		background[theme] = evaluate[string](t, tab, `getComputedStyle(document.body).backgroundColor`)
	}
	if background["light"] != "rgb(255, 255, 255)" || background["dark"] == background["light"] {
		t.Errorf("backgrounds: %v", background)
	}
	do(t, tab, chromedp.KeyEvent(kb.Tab))
	first := evaluate[string](t, tab, `document.activeElement.id`)
	do(t, tab, chromedp.KeyEvent(kb.Tab))
	second := evaluate[string](t, tab, `document.activeElement.id`)
	do(t, tab, chromedp.KeyEvent("not a key"+kb.Enter))
	fault := evaluate[string](t, tab, `document.getElementById("key-fault").textContent`)
	if first != "files" || second != "key" || !strings.HasPrefix(fault, "This is not the 64 hexadecimal digits") {
		t.Errorf("tab reaches %q, then %q; the fault of a wrong key: %q", first, second, fault)
	}
}
