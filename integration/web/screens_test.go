package web

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	screens     = flag.String("screens", "", "directory for pictures of the console's pages; with -console")
	consoleAt   = flag.String("console", "", "address of a running console, such as http://127.0.0.1:8081")
	consoleSees = flag.String("pages", "/", "pages to take a picture of, separated by blanks")
)

// Takes pictures of pages of a running console, in both themes, and as on a phone:
// go test ./integration/web -run TestScreens -screens DIR -console URL -pages '/ /search'
func TestScreens(t *testing.T) {
	if *screens == "" || *consoleAt == "" {
		t.Skip("no -screens and -console: there is nothing to take a picture of")
	}
	tab := browser(t)
	for i, path := range strings.Fields(*consoleSees) {
		for _, shot := range []struct {
			theme string
			width int64
		}{{"light", 1280}, {"dark", 1280}, {"light", 390}} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: shot.theme}}}
			if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			do(t, tab, chromedp.EmulateViewport(shot.width, 900), chromedp.Navigate(*consoleAt+path), chromedp.WaitReady("#main"))
			picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			name := strings.Map(func(r rune) rune {
				if strings.ContainsRune("/?&=:%.", r) {
					return '-'
				}
				return r
			}, path)
			file := filepath.Join(*screens, strings.Join([]string{string(rune('a' + i)), name, shot.theme, map[bool]string{true: "phone", false: "desk"}[shot.width < 500]}, "_")+".png")
			if err := os.WriteFile(file, picture, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Log(file)
		}
	}
}
