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
	return &store.Result{Columns: columns, Rows: shownRows(columns, rows)}
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
			t.Errorf("%s: got\n%s\nwant\n%s", format, got.String(), want)
		}
	}
}

// alike ignores the widths of columns.
func alike(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}

// held is a value of type Dynamic as the driver returns it.
type held struct {
	kind  string
	value any
}

func (h held) Any() any     { return h.value }
func (h held) Type() string { return h.kind }

// Values are printed according to their column's type, also within other values.
func TestSQLValues(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var none *time.Time
	for _, c := range []struct {
		kind  string
		value any
		want  string
	}{
		{"Array(UInt8)", []uint8{1, 2, 255}, `[1,2,255]`},
		{"Array(UInt8)", []uint8{}, `[]`},
		{"Array(Array(UInt8))", [][]uint8{{1}, {}}, `[[1],[]]`},
		{"Map(String, Array(UInt8))", map[string][]uint8{"a": {7}}, `{"a":[7]}`},
		{"Map(Date, UInt8)", map[time.Time]uint8{day: 1}, `{"2026-01-02":1}`},
		{"Date", day, `"2026-01-02"`},
		{"Date32", day, `"2026-01-02"`},
		{"Nullable(Date)", &day, `"2026-01-02"`},
		{"Nullable(Date)", none, `null`},
		{"Array(Nullable(Date))", []*time.Time{&day, nil}, `["2026-01-02",null]`},
		{"DateTime('UTC')", day, `"2026-01-02T00:00:00Z"`},
		{"Tuple(Date, Array(UInt8))", []any{day, []uint8{1}}, `["2026-01-02",[1]]`},
		{"Tuple(`a, b` Date, c Enum8('x, (y' = 1))", map[string]any{"a, b": day, "c": "x, (y"}, `{"a, b":"2026-01-02","c":"x, (y"}`},
		{"Nested(a Date)", []map[string]any{{"a": day}}, `[{"a":"2026-01-02"}]`},
		{"Array(FixedString(2))", []string{"ab"}, `["6162"]`},
		{"Array(String)", []string{"ab", "\xff"}, `["ab","ff"]`},
		{"SimpleAggregateFunction(max, Date)", day, `"2026-01-02"`},
		{"DateTime('Asia/Tokyo')", day.In(time.FixedZone("", 9*3600)), `"2026-01-02T00:00:00Z"`},
		{"Time", 12*time.Hour + 5*time.Second, `"12:00:05"`},
		{"Array(Time64(3))", []time.Duration{-time.Millisecond, 999 * time.Hour}, `["-00:00:00.001","999:00:00"]`},
		{"Array(Float64)", []float64{1.5, math.Inf(1), math.NaN()}, `[1.5,"+Inf","NaN"]`},
		{"Map(String, Float32)", map[string]float32{"x": 0.1, "y": float32(math.Inf(-1))}, `{"x":0.1,"y":"-Inf"}`},
		{"JSON", map[string]any{"a": map[string]any{"b": held{"Date", day}}}, `{"a":{"b":"2026-01-02"}}`},
		{"Array(Dynamic)", []any{held{"Int64", int64(5)}, held{"", nil}}, `[5,null]`},
	} {
		if got := string(jsonValue(shown(c.kind, c.value))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.kind, got, c.want)
		}
	}
}

func TestOutputClause(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1 FORMAT JSON":                              "FORMAT JSON",
		"SELECT 1\nformat CSV -- the end":                   "FORMAT CSV",
		"SELECT 1 FORMAT CSV SETTINGS max_threads = 1":      "FORMAT CSV",
		"SELECT 1 SETTINGS max_threads = 1 FORMAT Vertical": "FORMAT Vertical",
		"SELECT f(1) FORMAT/**/JSON /* done */":             "FORMAT JSON",
		"SELECT 1 INTO OUTFILE 'x' FORMAT CSV":              "INTO OUTFILE",
		"SELECT 1 FORMAT JSON; -- the end":                  "FORMAT JSON",
		"SELECT format('{}', 1)":                            "",
		"SELECT 'it''s FORMAT JSON'":                        "",
		"SELECT 1 -- FORMAT JSON":                           "",
		"SELECT format FROM (SELECT 1 AS format)":           "",
		"SELECT 1 AS format":                                "",
		"SELECT `x FORMAT JSON`, \"FORMAT JSON\" FROM t":    "",
		"SELECT (SELECT 1 FORMAT JSON)":                     "",
	} {
		if got := outputClause(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
