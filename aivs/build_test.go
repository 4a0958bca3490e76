package aivs

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Build refuses what a verifier would refuse. Its error says what is wrong and in which row.
func TestBuildRefuses(t *testing.T) {
	row := func(spoil func(*Row)) func(*Input) {
		return func(in *Input) { in.Rows = oneRow(spoil) }
	}
	keepAtMost(t, 100) // every log is generated twice
	for name, c := range map[string]struct {
		spoil func(*Input)
		want  string
	}{
		"empty session":       {func(in *Input) { in.SessionID = "" }, "session id is empty"},
		"bad UTF-8, session":  {func(in *Input) { in.SessionID = "\xff" }, `"\xff" is not valid UTF-8`},
		"bad UTF-8, agent":    {func(in *Input) { in.AgentID = "\xfe" }, `"\xfe" is not valid UTF-8`},
		"part 0":              {func(in *Input) { in.Part = 0 }, "part 0 1 or more"},
		"part of 2^53":        {func(in *Input) { in.Part = 1 << 53 }, "all below 2^53"},
		"redactions of 2^53":  {func(in *Input) { in.OptionalRedactions = 1 << 53 }, "all below 2^53"},
		"redactions below 0":  {func(in *Input) { in.Redactions = -1 }, "redactions -1 0 or more"},
		"year 1969":           {func(in *Input) { in.ExportedAt = -1 }, "exported_at -1 must be within years 1970 to 9999"},
		"year 10000":          {func(in *Input) { in.ExportedAt = lastExport + 1 }, "must be within years 1970 to 9999"},
		"previous digest":     {func(in *Input) { in.PreviousBundleSHA256 = "ABC" }, `previous bundle "ABC" is not 64 lower-case`},
		"no rows":             {func(in *Input) { in.Rows = nil }, "no rows (an empty session has an empty sequence)"},
		"wrong count":         {func(in *Input) { in.TraceCount++ }, "1 rows, but the plan's trace count is 2"},
		"climbing member":     {func(in *Input) { in.Members[0].Name = "../traces.jsonl" }, `member name "../traces.jsonl": only letters`},
		"absolute member":     {func(in *Input) { in.Members[0].Name = "/traces.jsonl" }, `member name "/traces.jsonl": only letters`},
		"member twice":        {func(in *Input) { in.Members[0].Name = "Verdicts.jsonl" }, `member name "verdicts.jsonl" is listed twice`},
		"second manifest":     {func(in *Input) { in.Members[0].Name = "cards/manifest.json" }, "the bundle has its own manifest.json"},
		"reserved seal":       {row(func(r *Row) { r.ActionType, r.ToolName = ActionSeal, sealTool+"x" }), "row 2: an \"seal\" row of tool"},
		"no tool name":        {row(func(r *Row) { r.ToolName = "" }), "row 2: action type and tool name must not be empty"},
		"row with bad UTF-8":  {row(func(r *Row) { r.Error = "\xff" }), "row 2: text is not valid UTF-8"},
		"source error":        {func(in *Input) { in.Rows = func(yield func(*Row, error) bool) { yield(nil, errors.New("disk")) } }, "row 2: disk"},
		"second row is wrong": {func(in *Input) { in.Rows = SliceRows([]Row{plainRow(), {}}) }, "row 3: action type"},
		"member error": {func(in *Input) {
			in.Members[0].Open = func() (io.ReadCloser, error) { return nil, errors.New("disk") }
		}, "member traces.jsonl: disk"},
		"other times": {changing(func(r *Row, pass int) { r.Timestamp = float64(pass) }), "the rows differ between the two passes"},
		"other texts": {changing(func(r *Row, pass int) { r.OutputsJSON = strconv.Itoa(pass) }), "the rows differ between the two passes"},
		// The error names the member that differs, not the one after it.
		"member grows":   {sized(1, 2), "archive traces.jsonl: member traces.jsonl: archive/tar: write too long"},
		"member shrinks": {sized(2, 1), "archive traces.jsonl: archive/tar: missed writing 1 bytes"},
		"member changes": {func(in *Input) {
			passes := 0
			in.Members[0].Open = func() (io.ReadCloser, error) {
				passes++
				return io.NopCloser(strings.NewReader(string(rune('a' + passes)))), nil
			}
		}, "member traces.jsonl differs between the two passes"},
	} {
		in := sampleInput(1)
		c.spoil(in)
		if bundle, err := Build(in, testKey("k")); err == nil {
			t.Errorf("%s: built %s", name, bundle.FileName)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// keepAtMost sets keptLog to n bytes, so longer logs are not kept in memory.
func keepAtMost(t *testing.T, n int64) {
	t.Helper()
	before := keptLog
	keptLog = n
	t.Cleanup(func() { keptLog = before })
}

func plainRow() Row {
	return Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}"}
}

func oneRow(spoil func(*Row)) iter.Seq2[*Row, error] {
	row := plainRow()
	spoil(&row)
	return SliceRows([]Row{row})
}

// changing makes a row differ each time that Rows is iterated.
func changing(change func(r *Row, pass int)) func(*Input) {
	pass := 0
	return func(in *Input) {
		in.Rows = func(yield func(*Row, error) bool) {
			pass++
			row := plainRow()
			change(&row, pass)
			yield(&row, nil)
		}
	}
}

// sized adds a member that has one size when it is listed, and another when it is written.
func sized(sizes ...int) func(*Input) {
	return func(in *Input) {
		next := 0
		in.Members[0].Open = func() (io.ReadCloser, error) {
			next++
			return io.NopCloser(strings.NewReader(strings.Repeat("x", sizes[next-1]))), nil
		}
	}
}

// Build accepts the limits of every range.
func TestBuildAccepts(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"the first second":    func(in *Input) { in.ExportedAt = 0 },
		"the last second":     func(in *Input) { in.ExportedAt = lastExport },
		"no redactions":       func(in *Input) { in.Redactions, in.OptionalRedactions = 0, 0 },
		"the first part":      func(in *Input) { in.Part = 1 },
		"the last part":       func(in *Input) { in.Part = maxCost },
		"the most redactions": func(in *Input) { in.Redactions, in.OptionalRedactions = maxCost, maxCost },
		"no predecessor":      func(in *Input) { in.PreviousBundleSHA256 = "" },
		"an empty member":     func(in *Input) { in.Members[1].Data = nil },
	} {
		in := sampleInput(1)
		change(in)
		if report := judge(t, build(t, in, testKey("k")).Bytes, Options{}); !report.Intact {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

// A caller's row must be what draft section 3.2 allows, in text that is UTF-8.
func TestRowCheck(t *testing.T) {
	const names, cost, time, text = "action type and tool name must not be empty", "cents is not within 0..9007199254740991", "timestamp is not finite", "text is not valid UTF-8"
	for name, c := range map[string]struct {
		change func(*Row)
		want   []string
	}{
		"as it is":       {func(*Row) {}, nil},
		"no action":      {func(r *Row) { r.ActionType = "" }, []string{names}},
		"no tool":        {func(r *Row) { r.ToolName = "" }, []string{names}},
		"no cost":        {func(r *Row) { r.CostCents = 0 }, nil},
		"the most cost":  {func(r *Row) { r.CostCents = maxCost }, nil},
		"cost below 0":   {func(r *Row) { r.CostCents = -1 }, []string{cost}},
		"cost of 2^53":   {func(r *Row) { r.CostCents = maxCost + 1 }, []string{cost}},
		"no number":      {func(r *Row) { r.Timestamp = math.NaN() }, []string{time}},
		"infinite":       {func(r *Row) { r.Timestamp = math.Inf(1) }, []string{time}},
		"infinite, past": {func(r *Row) { r.Timestamp = math.Inf(-1) }, []string{time}},
		"bad UTF-8":      {func(r *Row) { r.InputsJSON, r.Error = "\xff", "\xff" }, []string{text}}, // reported once
		"all of it":      {func(r *Row) { *r = Row{CostCents: -1, Timestamp: math.NaN(), Error: "\xff"} }, []string{names, cost, time, text}},
	} {
		row := plainRow()
		c.change(&row)
		var got []string
		if err := row.Check(); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		if !slices.EqualFunc(got, c.want, strings.HasSuffix) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A log of keptLog bytes is generated once; a longer one is generated twice and not kept. The
// bundle is the same.
func TestLongLog(t *testing.T) {
	passes := 0
	in := sampleInput(40)
	rows := in.Rows
	in.Rows = func(yield func(*Row, error) bool) { passes++; rows(yield) }
	kept := build(t, in, testKey("k"))
	var length spool
	if _, err := writeLog(&length, in, openingOf(t, in, testKey("k"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		most   int64
		passes int
	}{{length.size, 1}, {length.size - 1, 2}, {1, 2}} {
		keepAtMost(t, c.most)
		passes = 0
		bundle := build(t, in, testKey("k"))
		if passes != c.passes || !bytes.Equal(bundle.Bytes, kept.Bytes) || bundle.ChainHash != kept.ChainHash {
			t.Errorf("with a limit of %d bytes and a log of %d: %d passes, bundle %s, want %s", c.most, length.size, passes, bundle.SHA256, kept.SHA256)
		}
	}
	if _, err := writeLog(&length, in, openingOf(t, in, testKey("k"))); err != nil || cap(length.kept) > 0 {
		t.Errorf("%d bytes of a log beyond the limit are kept: %v", len(length.kept), err)
	}
}

func openingOf(t testing.TB, in *Input, key ed25519.PrivateKey) *Opening {
	t.Helper()
	open, err := in.opening(key)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// The fields of Bundle match its bytes, and every member that was opened is closed.
func TestBundleIsDescribed(t *testing.T) {
	in := sampleInput(2)
	opened, closed := 0, 0
	in.Members[0].Open = func() (io.ReadCloser, error) {
		opened++
		return closing{bytes.NewReader(in.Members[0].Data), &closed}, nil
	}
	bundle := build(t, in, testKey("k"))
	if bundle.Size != int64(len(bundle.Bytes)) || bundle.SHA256 != hexSHA256(bundle.Bytes) || bundle.Rows != 4 {
		t.Errorf("%d bytes are described as %d bytes, digest %s, %d rows", len(bundle.Bytes), bundle.Size, bundle.SHA256, bundle.Rows)
	}
	if opened != 2 || closed != opened {
		t.Errorf("opened %d times, closed %d times", opened, closed)
	}
}

// closing counts how often it is closed.
type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

// The file name has the first eight characters of the session id, with unsafe ones replaced
// (draft section 5.1).
func TestFileNameHasSafeCharacters(t *testing.T) {
	const safe = "abcxyzABCXYZ0123456789_-"
	for r := range rune(0x250) {
		want := "_"
		if strings.ContainsRune(safe, r) || r > 'c' && r < 'x' || r > 'C' && r < 'X' {
			want = string(r)
		}
		if got := FileName("1"+string(r)+"345678overlong", 7); got != "aivs_proof_1"+want+"345678_7.tar.gz" {
			t.Errorf("%U: %s", r, got)
		}
	}
}
