package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
)

// Deep JSON is not indented: that would make 16 MiB of it gigabytes.
func TestDeepValuesStaySmall(t *testing.T) {
	for _, open := range []string{"[", `["]]]]]]]]",`, `{"a":`} {
		text := strings.Repeat(open, 9000) + "1" + strings.Repeat(map[byte]string{'[': "]", '{': "}"}[open[0]], 9000)
		if got := value([]byte(text)); len(got) > 3*longText || strings.Contains(got, "\n") {
			t.Errorf("%q: %d bytes, begins %q", open, len(got), got[:40])
		}
	}
	if got := value([]byte(`{"a":[1,{"b":"é"}]}`)); !strings.Contains(got, "\n  \"a\": [") {
		t.Errorf("%q", got)
	}
}

// One kind of contents that is too large does not hide the others, and the page says that it is not
// there instead of that the bundle has none.
func TestEachKindHasABudget(t *testing.T) {
	var c Contents
	for i := range kinds - 1 {
		c.kept[i].size = budget
	}
	c.Row(&aivs.Row{ActionType: "aap.execute", Timestamp: 5})
	c.Row(&aivs.Row{ActionType: "aap.execute", Timestamp: 3})
	for _, name := range []string{aivs.TracesMember, aivs.VerdictsMember, aivs.SessionMember} {
		if _, err := io.WriteString(c.File(name), "{}\n"); err != nil {
			t.Fatal(err)
		}
	}
	if c.of(aivs.TracesMember) != nil || c.of(aivs.VerdictsMember) != nil || !bytes.Equal(c.of(aivs.SessionMember), []byte("{}\n")) || !c.cut() || c.count != 2 || c.first != 3 || c.last != 5 {
		t.Errorf("%+v", c)
	}
	c.rows = []aivs.Row{{ID: 2, InputsJSON: `{"trace_id":"t"}`}}
	for _, d := range decisions(&aivs.Report{Intact: true, Opening: new(aivs.Opening)}, &c) {
		if e := d.entry(); e.Verdict != "Its verdict may be in the file, which is too large to show all of it." {
			t.Errorf("%+v", e)
		}
	}
}

// A time is shown to the microsecond that the row has.
func TestSecondsToTheMicrosecond(t *testing.T) {
	if got := seconds(2180000000.000003); got != "2039-01-30 11:33:20.000003 UTC" {
		t.Error(got)
	}
}

// Rows that are called like those of a frame are decisions, unless they are the first and the last one.
func TestRowsThatOnlySoundLikeAFrame(t *testing.T) {
	var c Contents
	for i, r := range []aivs.Row{{ActionType: aivs.ActionOpen, ToolName: "plumbline.open.1"}, {ActionType: aivs.ActionOpen, ToolName: "plumbline.open.wallet"},
		{ActionType: aivs.ActionSeal, ToolName: "deal.close"}, {ActionType: aivs.ActionSeal, ToolName: "aivs.content.sha256.00"}, {ActionType: aivs.ActionToolCall, ToolName: "a.b"},
		{ActionType: aivs.ActionSeal, ToolName: "aivs.content.sha256.11"}} {
		r.ID = int64(i + 1)
		c.Row(&r)
	}
	if len(c.rows) != 4 || c.count != 4 || c.rows[0].ID != 2 || c.rows[3].ID != 5 {
		t.Errorf("%+v", c.rows)
	}
}
