package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// pretty formats a trace as a pretty-printer does.
func pretty(t testing.TB, agent, id string) string {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(trace(agent, id)), "", "  "); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// A trace on several lines becomes one refusal, which says what to do, and one dead letter. The
// lines before and after it are accepted as usual.
func TestPrettyPrintedTracesAreRefusedOnce(t *testing.T) {
	r := start(t)
	first := pretty(t, "a", "p-1")
	height := strings.Count(first, "\n") + 1
	array := "[\n" + trace("a", "x-1") + ",\n" + trace("a", "x-2") + "\n]"
	answer := r.post(body(trace("a", "1"), first, "", array, trace("a", "2"), pretty(t, "a", "p-2")))
	lines := answer.lines(t)
	if answer.code != http.StatusMultiStatus || len(lines) != 5 {
		t.Fatalf("%d %s", answer.code, answer.text)
	}
	for i, want := range []line{
		{Line: 1, Status: "accepted"}, {Line: 2, Through: height + 1, Status: "refused"},
		{Line: height + 3, Through: height + 6, Status: "refused"}, {Line: height + 7, Status: "accepted"},
		{Line: height + 8, Through: 2*height + 7, Status: "refused"},
	} {
		if got := lines[i]; got.Line != want.Line || got.Through != want.Through || got.Status != want.Status {
			t.Errorf("outcome %d is %+v, want %+v", i, got, want)
		}
	}
	if says := lines[1].Faults[0].Message; !strings.Contains(says, "put each trace on one line") || !strings.Contains(says, fmt.Sprintf("an object begins here and continues to line %d", height+1)) {
		t.Errorf("it says %q", says)
	}
	letters := r.letters(3)
	if string(letters[0].Data) != first || letters[0].Reason != schema.ReasonInvalidJSON || string(letters[1].Data) != array {
		t.Errorf("the dead letters are %q and %q", letters[0].Data, letters[1].Data)
	}
	if answer := r.send(http.MethodPost, "/v1/traces", bytes.NewReader(letters[0].Data), "Content-Type: application/json"); answer.code != http.StatusOK {
		t.Errorf("the first dead letter, posted alone: %d %s", answer.code, answer.text)
	}
	r.stored(3)
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	const mark = "\ufeff"
	r := start(t)
	for _, c := range []struct {
		body, media string
		code, lines int
	}{
		{mark + body(trace("a", "1"), trace("a", "2")), "application/x-ndjson", http.StatusOK, 2},
		{mark + pretty(t, "a", "3"), "application/json", http.StatusOK, 1},
		{mark + pretty(t, "a", "4"), "application/x-ndjson", http.StatusBadRequest, 1},
		{body(trace("a", "5"), mark+trace("a", "6")), "application/x-ndjson", http.StatusMultiStatus, 2},
	} {
		answer := r.send(http.MethodPost, "/v1/traces", strings.NewReader(c.body), "Content-Type: "+c.media)
		if got := len(answer.lines(t)); answer.code != c.code || got != c.lines {
			t.Errorf("%.40q as %s: %d, %d lines: %s", c.body, c.media, answer.code, got, answer.text)
		}
	}
	r.stored(4)
}

// A truncated line is refused alone. The lines after it are read as usual.
func TestTruncatedLinesAreRefusedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"in an object":     {[]string{`{"trace_id":"1",`, trace("a", "2"), trace("a", "3")}, "refused accepted accepted "},
		"behind a colon":   {[]string{`{"trace_id":`, trace("a", "2")}, "refused accepted "},
		"in a text":        {[]string{`{"trace_id":"1`, trace("a", "2")}, "refused accepted "},
		"an open bracket":  {[]string{"[", trace("a", "2"), trace("a", "3")}, "refused accepted accepted "},
		"the last one":     {[]string{trace("a", "2"), `{"trace_id":"1",`}, "accepted refused "},
		"the end is away":  {[]string{"{", `"trace_id": "1",`, `"agent_id": "a",`}, "refused "},
		"more on the line": {[]string{"{", "} {"}, "refused refused "},
	} {
		s := offline(t)
		answer := s.handle(t, strings.NewReader(body(c.lines...)))
		got := ""
		for _, l := range answer.lines(t) {
			got += l.Status + " "
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %s", name, got, c.want, answer.text)
		}
	}
}

// A value that does not fit into the rest of the window is read again from its beginning. A
// hostile body is not searched without limit.
func TestBlocksInLongBodies(t *testing.T) {
	s := offline(t)
	padding := trace("a", "1", `"x":"`+strings.Repeat("x", 700<<10)+`"`)
	big := "{\n\"x\":\"" + strings.Repeat("y", 600<<10) + "\"\n}"
	answer := s.handle(t, strings.NewReader(body(padding, padding, big, padding)))
	lines := answer.lines(t)
	if len(lines) != 4 || lines[2].Line != 3 || lines[2].Through != 5 || lines[3].Line != 6 || lines[3].Status != "accepted" {
		t.Errorf("%d %.600s", answer.code, answer.text)
	}
	if got := s.handle(t, strings.NewReader(strings.Repeat("[1 \n", 5000))).statuses(t)["refused"]; got != 5000 {
		t.Errorf("%d of 5000 lines are refused", got)
	}
}
