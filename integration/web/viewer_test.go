package web

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/viewer"
	"github.com/plumbline/plumbline/schema/published"
)

// openViewer writes the page to a file and opens it, as an auditor does.
func openViewer(t *testing.T) *tab {
	t.Helper()
	page, _, err := viewer.Page(aivs.Verifiers())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "viewer.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, "file://"+file)
	b.do(chromedp.Navigate("file://"+file), chromedp.WaitReady("#files"))
	return b
}

// give gives one bundle to the page, and returns what the two banners say.
func give(b *tab, bundle []byte, key string) (file, agent string) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(path, bundle, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Reload(), chromedp.WaitReady("#files"))
	if key != "" {
		b.do(chromedp.SetValue("#key", key))
	}
	b.do(chromedp.SetUploadFiles("#files", []string{path}), chromedp.WaitReady("#results section"))
	banner := func(n int) string {
		return evaluate[string](b, fmt.Sprintf(`document.querySelectorAll("#results section .banner")[%d]?.children[1].textContent ?? ""`, n))
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
	b := openViewer(t)
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
		if file, agent := give(b, c.bundle, c.key); file != c.want || !strings.HasPrefix(agent, "Verdict recorded inside: no") {
			t.Errorf("%s: the page says %q and %q", name, file, agent)
		}
		if said := evaluate[string](b, `document.getElementById("results").innerText`); strings.Contains(said, "--key") {
			t.Errorf("%s: the page speaks of a flag that it does not have:\n%s", name, said)
		}
	}
}

// The page in a browser gives the answers of Go, with the row at fault in red.
func TestViewerAgreesOnTamperedBundles(t *testing.T) {
	b := openViewer(t)
	tampered, err := filepath.Glob(published.Path(t, "conformance/aivs/tampered") + "/*.tar.gz")
	if err != nil || len(tampered) == 0 {
		t.Fatalf("no tampered bundles: %v", err)
	}
	for _, path := range tampered {
		bundle, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := aivs.Verify(strings.NewReader(string(bundle)), aivs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if file, _ := give(b, bundle, ""); strings.HasPrefix(file, "INTACT") != report.Intact {
			t.Errorf("%s: the page says %q, Go %+v", filepath.Base(path), file, report.Faults)
		}
		red := evaluate[int](b, `document.querySelectorAll("table.chain tr.bad").length`)
		if named := len(report.Faults) > 0 && strings.HasPrefix(report.Faults[0].Where, "row"); named != (red > 0) {
			t.Errorf("%s: %d red rows, Go names %+v", filepath.Base(path), red, report.Faults)
		}
	}
}

// A row that cannot be read keeps its number, so the row in red is the one that the fault names, and the facts say how far the log was read.
func TestViewerNumbersRowsThatCannotBeRead(t *testing.T) {
	b := openViewer(t)
	give(b, forged(t, bundleOf(t, "x", 3), `{"id": 3,`, `["id": 3,`), "")
	if red := evaluate[string](b, `[...document.querySelectorAll("table.chain tr.bad")].map((row) => row.cells[0].textContent + " " + row.cells[1].textContent).join()`); red != "3 cannot be read" {
		t.Errorf("in red: %q", red)
	}
	facts := evaluate[string](b, `document.querySelector("table.facts").innerText`)
	if !strings.Contains(facts, "5; a fault was found after 2 of them") {
		t.Errorf("the facts say:\n%s", facts)
	}
	if next := evaluate[string](b, `document.querySelectorAll("table.chain tbody tr")[3].innerText`); !strings.HasPrefix(next, "4") || !strings.Contains(next, "tool.x2") {
		t.Errorf("after it comes %q", next)
	}
}

// Whatever an agent or a forger writes stays text.
func TestViewerShowsHostileTextAsText(t *testing.T) {
	b := openViewer(t)
	file, _ := give(b, bundleOf(t, hostile, 2), "")
	title, made := evaluate[string](b, "document.title"), evaluate[int](b, `document.querySelectorAll("#results img, #results script").length`)
	if title != "Verify a bundle · Plumbline" || made != 0 {
		t.Errorf("title %q, %d elements made of the bundle's text", title, made)
	}
	if !strings.HasPrefix(file, "INTACT") {
		t.Errorf("the page says %q", file)
	}
}

// Both themes differ, and the page is used with the keyboard alone.
func TestViewerThemesAndKeyboard(t *testing.T) {
	b := openViewer(t)
	background := map[string]string{}
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		background[theme] = evaluate[string](b, `getComputedStyle(document.body).backgroundColor`)
	}
	if background["light"] != "rgb(255, 255, 255)" || background["dark"] == background["light"] {
		t.Errorf("backgrounds: %v", background)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	first := evaluate[string](b, `document.activeElement.id`)
	b.do(chromedp.KeyEvent(kb.Tab))
	second := evaluate[string](b, `document.activeElement.id`)
	b.do(chromedp.KeyEvent("not a key" + kb.Enter))
	fault := evaluate[string](b, `document.getElementById("key-fault").textContent`)
	if first != "files" || second != "key" || !strings.HasPrefix(fault, "This is not the 64 hexadecimal digits") {
		t.Errorf("tab reaches %q, then %q; the fault of a wrong key: %q", first, second, fault)
	}
}

// On a phone each row of the chain is whole, no name breaks within a word, and what cannot be read as a file is not judged.
func TestViewerOnAPhone(t *testing.T) {
	b := openViewer(t)
	b.do(chromedp.EmulateViewport(390, 900))
	give(b, forged(t, bundleOf(t, "finance.reconcile_account_of_a_supplier", 3), "supplier0", "supplier7"), "")
	if rows := evaluate[int](b, `[...document.querySelectorAll("table.chain tbody tr")].filter((row) => row.querySelectorAll("td").length === 5).length`); rows != 5 {
		t.Errorf("the chain has %d rows", rows)
	}
	if beyond := evaluate[int](b, `[...document.querySelectorAll("table.chain td")].filter((cell) => cell.getBoundingClientRect().right > innerWidth).length`); beyond > 0 {
		t.Errorf("%d cells of the chain are beyond the edge", beyond)
	}
	if broken := evaluate[[]string](b, brokenNames(".chain td:nth-child(3) .q, h3 .q")); len(broken) > 0 {
		t.Errorf("broken within a word: %q", broken)
	}
	b.do(chromedp.SetUploadFiles("#files", []string{t.TempDir()}))
	b.await(`document.getElementById("results").innerText.includes("It cannot be read as a file")`)
	if said := evaluate[string](b, `document.getElementById("status").textContent`); said != "2 bundles: 1 not intact, 1 not judged." {
		t.Errorf("the status says %q", said)
	}
}

// brokenNames is an expression for the parts of names, between the places where they may break, that are on more than one line.
func brokenNames(selector string) string {
	return `[...document.querySelectorAll("` + selector + `")].flatMap((name) => [...name.childNodes]).filter((part) => {
		if (part.nodeType !== Node.TEXT_NODE || /\s|[0-9a-f]{64}/.test(part.data)) return false; // words, or a hash
		const range = document.createRange();
		range.selectNodeContents(part);
		return new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1;
	}).map((part) => part.data)`
}
