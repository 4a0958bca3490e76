package main

import (
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

func sampleResult() *store.Result {
	score := 0.25
	columns := []store.Column{{Name: "id", Type: "String"}, {Name: "digest", Type: "FixedString(2)"}, {Name: "score", Type: "Nullable(Float64)"},
		{Name: "at", Type: "DateTime64(9, 'UTC')"}, {Name: "list", Type: "Array(String)"}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	rows := iter.Seq2[[]any, error](func(yield func([]any, error) bool) {
		_ = yield([]any{"a,\"b\"", "ab", &score, at, []string{"x"}}, nil) &&
			yield([]any{"\x1b[31mred", "\xff\x00", (*float64)(nil), at, []string{}}, nil) &&
			yield([]any{"line\nfeed", "cd", math.Inf(1), at, []string{}}, nil)
	})
	return &store.Result{Columns: columns, Rows: withoutBinary(columns, rows)}
}

func TestSQLFormats(t *testing.T) {
	for format, want := range map[string]string{
		"table": `id               digest  score  at                           list
a,"b"            6162    0.25   2026-01-02T03:04:05.0000006Z  ["x"]
"\x1b[31mred"    ff00    -      2026-01-02T03:04:05.0000006Z  []
"line\nfeed"     6364    +Inf   2026-01-02T03:04:05.0000006Z  []
`,
		"csv": `id,digest,score,at,list
"a,""b""",6162,0.25,2026-01-02T03:04:05.0000006Z,"[""x""]"
` + "\x1b[31mred" + `,ff00,,2026-01-02T03:04:05.0000006Z,[]
"line
feed",6364,+Inf,2026-01-02T03:04:05.0000006Z,[]
`,
		"json": `{"id":"a,\"b\"","digest":"6162","score":0.25,"at":"2026-01-02T03:04:05.0000006Z","list":["x"]}
{"id":"\u001b[31mred","digest":"ff00","score":null,"at":"2026-01-02T03:04:05.0000006Z","list":[]}
{"id":"line\nfeed","digest":"6364","score":"+Inf","at":"2026-01-02T03:04:05.0000006Z","list":[]}
`,
	} {
		var got strings.Builder
		if err := (&sqlCommand{Format: format}).write(&got, sampleResult()); err != nil {
			t.Fatal(err)
		}
		if alike(got.String()) != alike(want) {
			t.Errorf("%s:\n%s\nwant\n%s", format, got.String(), want)
		}
	}
}

// alike forgets how wide the columns are.
func alike(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}
