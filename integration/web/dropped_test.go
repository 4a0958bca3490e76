package web

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// An auditor downloads a bundle from the console and drops it on the page that verifies bundles: it is intact, and a copy in
// which one word was changed is refused, with its row in red. The page asks for nothing.
func TestConsoleVerifiesDroppedBundles(t *testing.T) {
	s := startSite(t)
	s.judged("shop", "monday", "paper", 2)
	sha256 := s.sealed("shop", "monday", "paper")
	bundle := download(t, s.url+"/bundle/"+sha256)
	b := s.tab()
	b.open(s.url + "/chain?sha256=" + sha256)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('main a[href="/verify"]').click()`), chromedp.WaitReady("#files"))
	if here := evaluate[string](b, `document.querySelector("nav a[aria-current]").textContent`); here != "Verify" {
		t.Errorf("the navigation says that this is %q", here)
	}
	b.asked()
	dropOn(b, "good.tar.gz", bundle)
	b.await(`document.querySelectorAll("#results section").length === 1`)
	if said := evaluate[string](b, `document.getElementById("results").innerText`); !strings.Contains(said, "INTACT") || strings.Contains(said, "NOT INTACT") || evaluate[int](b, `document.querySelectorAll("#results tr.bad").length`) > 0 {
		t.Errorf("of the bundle the page says:\n%s", said)
	}
	dropOn(b, "forged.tar.gz", forged(t, bundle, "tool.paper1", "tool.paper7"))
	b.await(`document.getElementById("results").innerText.includes("NOT INTACT")`)
	if evaluate[int](b, `document.querySelectorAll("#results tr.bad").length`) == 0 {
		t.Errorf("no row is red:\n%s", evaluate[string](b, `document.getElementById("results").innerText`))
	}
	if asked := b.asked(); len(asked) > 0 {
		t.Errorf("the page asked for %q", asked)
	}
}

// download returns what an address serves.
func download(t *testing.T, address string) []byte {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return bytes
}

// forged returns a bundle in which the first of these words is another one of the same length.
func forged(t *testing.T, bundle []byte, word, another string) []byte {
	t.Helper()
	content := aivstest.Gunzip(t, bundle)
	if len(word) != len(another) || !bytes.Contains(content, []byte(word)) {
		t.Fatalf("the bundle has no %q, or %q is not as long", word, another)
	}
	return aivstest.Gzip(t, bytes.Replace(content, []byte(word), []byte(another), 1))
}

// dropOn drops a file on the page, as a person does.
func dropOn(b *tab, name string, file []byte) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const dropped = new DataTransfer();
		dropped.items.add(new File([Uint8Array.from(atob("` + base64.StdEncoding.EncodeToString(file) + `"), (c) => c.charCodeAt(0))], "` + name + `"));
		document.getElementById("drop").dispatchEvent(new DragEvent("drop", { bubbles: true, dataTransfer: dropped }));
	})()`))
}
