package aivs

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// The page judges a log of more rows than a function may have arguments.
func TestPageJudgesLongLogs(t *testing.T) {
	rows := make([]Row, 45_000)
	for i := range rows {
		rows[i] = Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}", Timestamp: float64(i)}
	}
	in := &Input{SessionID: "s", ExportedAt: 1773502245, Part: 1, LastPart: true, TraceCount: int64(len(rows)), Generator: "x", Rows: SliceRows(rows)}
	if report := agree(t, "45,000 rows", build(t, in, testKey("k")).Bytes, Options{}); !report.Intact {
		t.Errorf("%+v", report.Faults)
	}
}

// The page hashes no row again for a seal behind it, however many seals a log has.
func TestPageHashesEachRowOnce(t *testing.T) {
	rows := make([]Row, 2000)
	for i := range rows {
		rows[i] = Row{ActionType: ActionSeal}
	}
	content := tarOfFiles(t, membersOf(signedLog(rows...))...)
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	writeFile(t, file, aivstest.Gzip(t, content))
	if page := browse(t, file, ""); len(page.Faults) > 0 || page.Hashed > 2*int64(len(content)) {
		t.Errorf("%d bytes of %d were hashed: %q", page.Hashed, len(content), page.Faults)
	}
}

// The page's own SHA-256 is that of Go, whatever the pieces.
func TestRunningHashOfThePage(t *testing.T) {
	runtime, err := theRuntime()
	if err != nil {
		t.Fatal(err)
	}
	var pieces, want []string
	whole := ""
	for _, n := range []int{0, 1, 54, 1, 7, 1, 63, 64, 65, 128, 1000, 0, 3} {
		piece := strings.Repeat("ab\x7f", n)[:n]
		pieces, whole = append(pieces, piece), whole+piece
		want = append(want, hexSHA256([]byte(whole)))
	}
	var answer browsed
	request := map[string][]string{"text": pieces}
	if err := errors.Join(runtime.requests.Encode(request), runtime.responses.Decode(&answer)); err != nil || !slices.Equal(answer.Kept, want) {
		t.Errorf("%v: %q, want %q", err, answer.Kept, want)
	}
}
