package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/schema/published"
)

// build returns a ledger file with those entries after its genesis.
func build(t rapid.TB, opening ledger.Opening, entries ...string) ([]byte, ledger.Chain) {
	t.Helper()
	var chain ledger.Chain
	var file []byte
	genesis, err := opening.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range append([]string{string(genesis)}, entries...) {
		kind := ledger.Claim
		if i == 0 {
			kind = ledger.Genesis
		}
		e, err := chain.Append(kind, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		file = e.AppendLine(file)
	}
	return file, chain
}

var opening = ledger.Opening{Agent: "a", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

func validate(file []byte, before *ledger.Summary) (ledger.Summary, error) {
	return ledger.Validate(bytes.NewReader(file), before)
}

// chainVectors returns the published vectors.
func chainVectors(t *testing.T) (vectors []struct {
	Name, PrevHash, Type, Canonical, Hash string
	Seq                                   uint64
}) {
	t.Helper()
	if err := json.Unmarshal(published.Read(t, "conformance/integrity/rfc_integrity_chain.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestPublishedVectors(t *testing.T) {
	for _, v := range chainVectors(t) {
		previous, err := ledger.ParseHash(v.PrevHash)
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := ledger.Canonical([]byte(v.Canonical))
		if err != nil || string(canonical) != v.Canonical {
			t.Errorf("%s: canonical %s, error %v", v.Name, canonical, err)
		}
		if got := ledger.HashEntry(previous, v.Seq, ledger.Type(v.Type), canonical); got.String() != v.Hash {
			t.Errorf("%s: %s, want %s", v.Name, got, v.Hash)
		}
	}
}

// TestHashOfTheRFC does not need the shared vectors: section 3.3, T4 on genesis.
func TestHashOfTheRFC(t *testing.T) {
	var chain ledger.Chain
	for _, c := range []struct {
		kind       ledger.Type
		data, want string
	}{
		{ledger.Genesis, `{"version": "1.0", "created": "2026-02-21T18:00:00Z", "agent": "bernard"}`, "9fff5bccc8fa2677ae9435a31eec9e09009b9e79001e2de21383eead7cb3f280"},
		{ledger.Claim, `{"text":"test claim"}`, "67a19fda4bc5c48e6b54fde0d57bf514eed5a36bf6a30221f06ac2dd2b2cb1c2"},
	} {
		e, err := chain.Append(c.kind, []byte(c.data))
		if err != nil || e.Hash.String() != c.want {
			t.Errorf("%s: %v, error %v, want %s", c.kind, e, err, c.want)
		}
	}
}

// faulty returns files with one fault each, and the expected error.
func faulty(t rapid.TB) map[string]struct {
	file []byte
	kind string
	seq  uint64
} {
	file, _ := build(t, opening, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	lines := bytes.SplitAfter(file, []byte("\n"))
	lines = lines[:4]
	with := func(i int, from, to string) []byte {
		changed := append([][]byte(nil), lines...)
		changed[i] = bytes.Replace(changed[i], []byte(from), []byte(to), 1)
		if bytes.Equal(changed[i], lines[i]) {
			t.Fatalf("%q is not in %s", from, lines[i])
		}
		return bytes.Join(changed, nil)
	}
	order := func(numbers ...int) (f []byte) {
		for _, n := range numbers {
			f = append(f, lines[n]...)
		}
		return f
	}
	skipping := ledger.Entry{Seq: 3, Type: ledger.Claim, Data: []byte(`{}`)}
	if _, chain := build(t, opening, `{"n":1}`); true {
		skipping.Hash = ledger.HashEntry(chain.Last(), 3, skipping.Type, skipping.Data)
	}
	return map[string]struct {
		file []byte
		kind string
		seq  uint64
	}{
		"empty":              {nil, ledger.FaultForm, 0},
		"data changed":       {with(2, `{"n":2}`, `{"n":9}`), ledger.FaultHash, 2},
		"type changed":       {with(1, "CLAIM", "META"), ledger.FaultHash, 1},
		"seq of minus zero":  {with(0, `"seq":0`, `"seq":-0`), ledger.FaultForm, 0},
		"nested too deep":    {with(2, `{"n":2}`, `{"n":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`), ledger.FaultForm, 2},
		"hash changed":       {with(1, `"hash":"`, `"hash":"0`), ledger.FaultForm, 1},
		"entry lost":         {order(0, 1, 3), ledger.FaultGap, 2},
		"entries swapped":    {order(0, 2, 1, 3), ledger.FaultGap, 1},
		"entry twice":        {order(0, 1, 1, 2), ledger.FaultGap, 2},
		"genesis lost":       {order(1, 2, 3), ledger.FaultGap, 0},
		"number skipped":     {append(order(0, 1), skipping.AppendLine(nil)...), ledger.FaultGap, 2},
		"broken line":        {append(order(0), "{\n"...), ledger.FaultForm, 1},
		"blank line":         {append(append(order(0), '\n'), order(1)...), ledger.FaultForm, 1},
		"further member":     {with(1, `"data"`, `"note":"x","data"`), ledger.FaultForm, 1},
		"member twice":       {with(1, `"type":"CLAIM"`, `"type":"CLAIM","type":"CLAIM"`), ledger.FaultForm, 1},
		"data key twice":     {with(1, `{"n":1}`, `{"n":1,"n":1}`), ledger.FaultForm, 1},
		"inexact number":     {with(1, `{"n":1}`, `{"n":9007199254740993}`), ledger.FaultForm, 1},
		"number beyond all":  {with(1, `{"n":1}`, `{"n":1e999}`), ledger.FaultForm, 1},
		"data is a list":     {with(1, `{"n":1}`, `[1]`), ledger.FaultForm, 1},
		"unknown type":       {with(1, "CLAIM", "claim"), ledger.FaultForm, 1},
		"seq is a fraction":  {with(1, `"seq":1`, `"seq":1.0`), ledger.FaultForm, 1},
		"seq is a text":      {with(1, `"seq":1`, `"seq":"1"`), ledger.FaultForm, 1},
		"invalid UTF-8":      {with(1, `{"n":1}`, "{\"n\":\"\xff\"}"), ledger.FaultForm, 1},
		"half a surrogate":   {with(1, `{"n":1}`, `{"n":"\ud800"}`), ledger.FaultForm, 1},
		"two values a line":  {with(1, "\n", "{}\n"), ledger.FaultForm, 1},
		"upper-case hash":    {bytes.Replace(file, lines[1][len(lines[1])-12:], bytes.ToUpper(lines[1][len(lines[1])-12:]), 1), ledger.FaultForm, 1},
		"second genesis":     {secondGenesis(t), ledger.FaultGenesis, 1},
		"no genesis":         {noGenesis(), ledger.FaultGenesis, 0},
		"continues nonsense": {continuing(t, `{"continues_from":"xyz"}`), ledger.FaultContinuation, 0},
		"continues a number": {continuing(t, `{"continues_from":1}`), ledger.FaultContinuation, 0},
		"continues null":     {continuing(t, `{"continues_from":null}`), ledger.FaultContinuation, 0},
		"seq beyond 2^53":    {with(1, `"seq":1`, `"seq":9007199254740992`), ledger.FaultForm, 1},
	}
}

func secondGenesis(t rapid.TB) []byte {
	file, chain := build(t, opening)
	e := ledger.Entry{Seq: 1, Type: ledger.Genesis, Data: []byte("{}"), Hash: ledger.HashEntry(chain.Last(), 1, ledger.Genesis, []byte("{}"))}
	return e.AppendLine(file)
}

func noGenesis() []byte {
	e := ledger.Entry{Type: ledger.Boot, Data: []byte("{}"), Hash: ledger.HashEntry(ledger.Hash{}, 0, ledger.Boot, []byte("{}"))}
	return e.AppendLine(nil)
}

func continuing(t rapid.TB, genesis string) []byte {
	var chain ledger.Chain
	e, err := chain.Append(ledger.Genesis, []byte(genesis))
	if err != nil {
		t.Fatal(err)
	}
	return e.AppendLine(nil)
}

func TestFirstFaultIsNamed(t *testing.T) {
	for name, c := range faulty(t) {
		_, err := validate(c.file, nil)
		var fault *ledger.Fault
		if !errors.As(err, &fault) || fault.Kind != c.kind || fault.Seq != c.seq {
			t.Errorf("%s: %v, want %s at seq %d", name, err, c.kind, c.seq)
		}
	}
}

func TestAnyChangedByteIsRefusedOrMeansTheSame(t *testing.T) {
	file, _ := build(t, opening, `{"text":"é","n":1.5}`, `{"list":[1,true,null]}`)
	whole, err := validate(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range file {
		for _, b := range []byte{file[i] ^ 1, file[i] ^ 0x20, ' ', '0'} {
			changed := bytes.Clone(file)
			changed[i] = b
			// A changed byte without a change of meaning (white space, 1.5 as 1.50) may pass;
			// then the chain must end the same.
			if got, err := validate(changed, nil); err == nil && (got.Last != whole.Last || got.Entries != whole.Entries) {
				t.Fatalf("byte %d changed to %q: accepted as another ledger", i, b)
			}
		}
	}
}

func TestRotationContinues(t *testing.T) {
	first, chain := build(t, opening, `{"n":1}`)
	last := chain.Last()
	second, _ := build(t, ledger.Opening{Agent: "a", Created: opening.Created, ContinuesFrom: &last}, `{"n":2}`)
	before, err := validate(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := validate(second, &before); err != nil || got.ContinuesFrom == nil || *got.ContinuesFrom != last {
		t.Errorf("%+v, error %v", got, err)
	}
	broken := append(bytes.Clone(second), "{}\n"...)
	for name, other := range map[string][]byte{"a first file": first, "skipping one": second, "skipping one, and broken later": broken} {
		next := before
		if name != "a first file" {
			next.Last[0]++
		}
		var fault *ledger.Fault
		if _, err := validate(other, &next); !errors.As(err, &fault) || fault.Kind != ledger.FaultContinuation || fault.Seq != 0 {
			t.Errorf("%s: %v, want a fault of continuation", name, err)
		}
	}
}

func TestRotationIsDue(t *testing.T) {
	rotation, began := ledger.DefaultRotation(), opening.Created
	var empty ledger.Chain
	full := ledger.Resume(&ledger.Entry{Seq: 9_999})
	some := ledger.Resume(&ledger.Entry{Seq: 9_998})
	for name, c := range map[string]struct {
		chain ledger.Chain
		age   time.Duration
		want  bool
	}{
		"empty and old": {empty, 31 * 24 * time.Hour, false},
		"full":          {full, 0, true},
		"nearly full":   {some, 30*24*time.Hour - 1, false},
		"old":           {some, 30 * 24 * time.Hour, true},
	} {
		if got := rotation.Due(&c.chain, began, began.Add(c.age)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	var chain ledger.Chain
	if _, err := chain.Append(ledger.Claim, []byte("{}")); err == nil || !strings.Contains(err.Error(), "GENESIS") {
		t.Errorf("a CLAIM as entry 0: %v", err)
	}
	if _, err := chain.Append(ledger.Genesis, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for kind, data := range map[ledger.Type]string{
		ledger.Genesis: "{}", "OTHER": "{}", ledger.Boot: "", ledger.Claim: "[]", ledger.Verify: `{"a":1,"a":2}`,
		ledger.Retract: `{"n":1e400}`, ledger.Meta: `{"n":-9007199254740993}`,
	} {
		if e, err := chain.Append(kind, []byte(data)); err == nil {
			t.Errorf("%s %s: appended %s", kind, data, e.Data)
		}
	}
	if chain.Len() != 1 {
		t.Errorf("a refused entry was counted: %d entries", chain.Len())
	}
}

func FuzzParseLine(f *testing.F) {
	file, _ := build(f, opening, `{"n":1}`)
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ledger.ParseLine(line)
		if err != nil {
			return
		}
		again, err := ledger.ParseLine(e.AppendLine(nil))
		if err != nil || again.Seq != e.Seq || again.Type != e.Type || again.Hash != e.Hash || !bytes.Equal(again.Data, e.Data) {
			t.Errorf("%q: read again as %+v, error %v", line, again, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	var chain ledger.Chain
	if _, err := chain.Append(ledger.Genesis, []byte("{}")); err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"sha256":"9fff5bccc8fa2677ae9435a31eec9e09009b9e79001e2de21383eead7cb3f280","agent_id":"a","session_id":"s"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chain.Append(ledger.Claim, data); err != nil {
			b.Fatal(err)
		}
	}
}
