package web

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plumbline/plumbline/aivs"
)

var (
	screens     = flag.String("screens", "", "directory for pictures of the console's pages; with -console")
	pictures    = flag.String("pictures", "", "directory for the pictures of README.md; with -console")
	consoleAt   = flag.String("console", "", "address of a running console, such as http://127.0.0.1:8081")
	consoleSees = flag.String("pages", "/", "pages to take a picture of, separated by blanks")
)

// settled reports whether a page is there and does not load itself again.
const settled = `document.readyState === "complete" && !/The page loads itself again|newer figures are being counted/.test(document.body.innerText)`

// Takes pictures of pages of a running console, in both themes, on a desk and on a phone:
// go test ./integration/web -run TestScreens -screens DIR -console URL -pages '/ /search'
func TestScreens(t *testing.T) {
	if *screens == "" || *consoleAt == "" {
		t.Skip("no -screens and -console: there is nothing to take a picture of")
	}
	b := openTab(t, *consoleAt+"/")
	for i, path := range strings.Fields(*consoleSees) {
		for _, shot := range []struct {
			theme, name string
			width       int64
		}{{"light", "desk", 1280}, {"dark", "desk", 1280}, {"light", "phone", 390}, {"dark", "phone", 390}} {
			b.theme(shot.theme)
			b.do(chromedp.EmulateViewport(shot.width, 900), chromedp.Navigate(*consoleAt+path))
			b.await(settled)
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			page, _, _ := strings.Cut(strings.Trim(path, "/"), "?")
			savePicture(t, *screens, strings.Join([]string{string(rune('a' + i)), cmp.Or(page, "fleet"), shot.theme, shot.name}, "-"), picture)
		}
	}
}

// Takes the pictures of README.md from the console of plumbline demo --stay (make pictures): the fleet, an agent that drifts, and
// what the browser says of a bundle in which one word was changed.
func TestPictures(t *testing.T) {
	if *pictures == "" || *consoleAt == "" {
		t.Skip("no -pictures and -console: there is nothing to take a picture of")
	}
	b := openTab(t, *consoleAt+"/")
	b.theme("light")
	b.do(chromedp.EmulateViewport(1280, 860))
	take := func(name string) {
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		savePicture(t, *pictures, name, smaller(t, picture))
	}
	b.open(*consoleAt + "/")
	b.await(settled)
	take("fleet")
	agent := evaluate[string](b, `document.querySelector("table.stack tbody a")?.href ?? ""`)
	if agent == "" {
		t.Fatal("no agent drifts in this fleet")
	}
	b.open(agent)
	take("agent")
	b.open(evaluate[string](b, `document.querySelector('main a[href^="/session"]').href`))
	chain := evaluate[string](b, `document.querySelector('main a[href^="/chain"]').href`)
	address, err := url.Parse(chain)
	if err != nil {
		t.Fatal(err)
	}
	bundle := download(t, *consoleAt+"/bundle/"+address.Query().Get("sha256"))
	var tools []string
	if _, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{Row: func(row *aivs.Row) { tools = append(tools, row.ToolName) }}); err != nil || len(tools) < 3 {
		t.Fatalf("a bundle of %q: %v", tools, err)
	}
	b.do(chromedp.Navigate(*consoleAt+"/verify"), chromedp.WaitReady("#files"))
	dropOn(b, "tampered.tar.gz", forged(t, bundle, tools[2], tools[2][:len(tools[2])-1]+"X"))
	b.await(`document.getElementById("results").innerText.includes("NOT INTACT") && document.querySelector("#results tr.bad") !== null`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("results").scrollIntoView()`))
	take("verify")
}

func savePicture(t *testing.T, dir, name string, picture []byte) {
	t.Helper()
	file := filepath.Join(dir, name+".png")
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", file, len(picture))
}

// smaller encodes a picture with 256 colors: those that are there most often, and for each other one the nearest of them.
func smaller(t *testing.T, picture []byte) []byte {
	t.Helper()
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA) }
	bounds := whole.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var few color.Palette
	for _, c := range often[:min(256, len(often))] {
		few = append(few, c)
	}
	place := map[color.RGBA]uint8{}
	for c := range count {
		place[c] = uint8(few.Index(c))
	}
	reduced := image.NewPaletted(bounds, few)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.SetColorIndex(x, y, place[at(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
