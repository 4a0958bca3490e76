// Package web tests the pages that people look at, in a real browser: headless Chromium, driven by chromedp. make test-web
// installs it from Debian's packages and runs the tests; elsewhere PLUMBLINE_CHROMIUM names the program.
package web

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// chromium is the one browser of all tests. It starts with the first tab.
var chromium struct {
	sync.Mutex
	ctx  context.Context
	stop func() error
}

func TestMain(m *testing.M) {
	os.Exit(enginetest.Run(func() int {
		code := m.Run()
		if chromium.stop != nil {
			if err := chromium.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop Chromium:", err)
				code = max(code, 1)
			}
		}
		return code
	}))
}

// startChromium returns the context of the browser.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	program := os.Getenv("PLUMBLINE_CHROMIUM")
	if program == "" {
		t.Skip("PLUMBLINE_CHROMIUM names no Chromium: run make test-web")
	}
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	started, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(started)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	chromium.ctx = ctx
	chromium.stop = func() error {
		defer stop()
		return chromedp.Cancel(ctx)
	}
	return ctx
}

// tab is a tab with cookies and storage of its own. At the end of its test, whatever went wrong in its pages fails the
// test: an exception, an error on the JavaScript console, a violation of the Content-Security-Policy, a request to
// another place than the page's own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	faults   []string
	requests []string // in order, the pages included
	from     string   // the only prefix that a request may have
	expected []string // parts of faults that the test provokes
}

// openTab opens a tab whose pages may ask for addresses that begin with from, and for nothing else.
func openTab(t *testing.T, from string) *tab {
	t.Helper()
	b := &tab{t: t, from: from}
	ctx, closeTab := chromedp.NewContext(startChromium(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.watch))
	b.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // opens the tab, which would else end with the time limit of its first step
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			if !slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(fault, part) }) {
				t.Error("in the browser: " + fault)
			}
		}
	})
	return b
}

// watch keeps what must not happen, and the requests.
func (b *tab) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.faults = append(b.faults, "exception: "+text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.faults = append(b.faults, fmt.Sprintf("console.%s", e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
		if !strings.HasPrefix(e.Request.URL, b.from) {
			b.faults = append(b.faults, "request to "+e.Request.URL)
		}
	}
}

// expect permits faults that have this text, which the test provokes.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

// asked returns the requests since the last call.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.requests
	b.requests = nil
	return requests
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute) // what it waits for may never be there
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page of the console. Where figures are still being counted, the page loads itself again until they are there.
func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitReady("#main h1"))
	b.await(`document.readyState === "complete" && !document.getElementById("main").innerText.includes("The page loads itself again")`)
}

// theme makes the system's theme light or dark.
func (b *tab) theme(name string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

// await returns once a condition holds in the page.
func (b *tab) await(condition string) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition)) // fails where the page is just being left
		if err == nil && holds {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s never holds (%v): %s", condition, err, evaluate[string](b, `document.body.innerText`))
		}
	}
}

// evaluate returns the value of a JavaScript expression in the page.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}
