package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The live page shows a trace that is judged while it is open, whatever its agent is called, and stops when it is paused.
func TestLivePage(t *testing.T) {
	s := startSite(t)
	b := s.tab()
	b.open(s.url + "/tail")
	b.await(`document.getElementById("tail-state").textContent === "Up to date."`)
	shows := func() string {
		return evaluate[string](b, `["tail-none", "tail"].filter((id) => document.getElementById(id).checkVisibility()).join()`)
	}
	if got := shows(); got != "tail-none" {
		t.Errorf("without a verdict the page shows %q", got)
	}
	s.judged(hostile, "s", hostile, 1)
	b.await(`document.querySelectorAll("#tail tr").length === 1`)
	if got := shows(); got != "tail" {
		t.Errorf("with a verdict the page shows %q", got)
	}
	if text := evaluate[string](b, `document.querySelector("#tail tr").cells[2].textContent`); text != hostile {
		t.Errorf("the agent is shown as %q", text)
	}
	checkHarmless(b, "/tail")
	s.unknownCard = true
	s.judged("shop", "s", "x", 1)
	b.await(`document.querySelectorAll("#tail tr").length === 2`)
	if said := evaluate[string](b, `document.querySelector("#tail tr").cells[1].innerHTML`); !strings.HasPrefix(said, `<bdi class="severity medium">card unknown</bdi>`) {
		t.Errorf("of a trace whose card is unknown the page says %q", said)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").click()`))
	b.await(`document.getElementById("tail-state").textContent.startsWith("Paused")`)
	b.open(s.url + "/tail?verdict=deny")
	b.await(`document.getElementById("tail-none").textContent.includes("for these filters")`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").click()`))
	if got := shows(); got != "" {
		t.Errorf("paused without a verdict, the page shows %q", got)
	}
}
