package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// elements returns the names of a document's elements, each with its attributes and text, and fails where the
// document is not well-formed XML.
func elements(t *testing.T, document []byte) (all []string) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch token := token.(type) {
		case xml.StartElement:
			text := token.Name.Local
			for _, a := range token.Attr {
				text += " " + a.Name.Local + "=" + a.Value
			}
			all = append(all, text)
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				all = append(all, "text: "+text)
			}
		}
	}
}

// A chart is well-formed XML with whatever names, and shows lines, thresholds, bands and marks at their
// places.
func TestChartIsWellFormed(t *testing.T) {
	name := "a <b> & \"c\" \x00 \xff ]]>"
	c := &chart{
		title: name, x: chartAxis{name, 0, 100}, y: chartAxis{name, 0, 1},
		lines:      []chartLine{{name: name, points: []chartPoint{{0, 0}, {50, 0.5}, {200, 7}}}, {name: "second", color: 7, dashed: true}},
		thresholds: []chartThreshold{{"threshold 0.3", 0.5}},
		bands:      []chartBand{{"baseline", 2, 0, 50}, {"baseline", 2, 75, 100}},
		marks:      []chartMark{{name: "alert", note: name, x: 50}},
	}
	all := strings.Join(elements(t, c.svg()), "\n")
	for _, want := range []string{
		"svg xmlns=http://www.w3.org/2000/svg",
		"text: a <b> & \"c\" \uFFFD \uFFFD ]]>",
		"polyline points=64.0,364.0 382.0,206.0 700.0,48.0 fill=none", // values outside an axis stay at its end
		"line x1=64.0 y1=206.0 x2=700.0 y2=206.0 stroke=#555555",      // the threshold
		"rect x=64.0 y=48 width=318.0 height=316",                     // the first band
		"line x1=382.0 y1=48.0 x2=382.0 y2=364.0 stroke=#cc0000",      // the mark
		"text: 0.4", "text: 80", "text: second",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the drawing lacks %q:\n%s", want, all)
		}
	}
	if n := strings.Count(all, "text: baseline"); n != 1 {
		t.Errorf("the legend names baseline %d times", n)
	}
}

// A chart without values is a drawing, too.
func TestChartOfNothing(t *testing.T) {
	elements(t, (&chart{}).svg())
	elements(t, (&chart{x: chartAxis{"x", 5, 5}, lines: []chartLine{{name: "none"}}}).svg())
}
