package schema

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema/published"
)

// scanned returns the length of the value with which raw begins, by the scanner and by jsontext,
// and -1 where one of them does not accept it.
func scanned(raw []byte) (fast, strict int) {
	fast, strict = -1, -1
	var s scanner
	s.reset(raw)
	if v := s.value(); v != nil {
		fast = s.at
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if v, err := dec.ReadValue(); err == nil && beyondLimits(v, 0) == "" {
		strict = int(dec.InputOffset())
	}
	return fast, strict
}

// The scanner accepts what is common, and nothing that is not strict JSON within the limits.
func TestScanner(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"n` + strings.Repeat("x", i) + `":1`)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, raw := range []string{
		`{}`, `[]`, ` { "a" : [ ] , "b" : { } } `, `{"a":1,"b":{"a":[1,{"a":null}]},"c":{"a":true}}`, `[1 , false]`,
		`0`, `-0`, `12`, `-1.50`, `1e5`, `1E+15`, `0.5e-10`, strings.Repeat("9", safeDigits),
		`""`, `"a"`, `"seven b"`, `"eight by"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD83D\uDE00\uffff"`, `"é, 日本, 😀, eight bytes and more"`, "\"\x7f\"",
		deep(MaxDepth), many(maxScannedNames),
	} {
		if fast, strict := scanned([]byte(raw)); fast < 0 || fast != strict {
			t.Errorf("%s: the scanner ends at %d, jsontext at %d", raw, fast, strict)
		}
	}
	for _, raw := range []string{
		``, ` `, `{`, `[`, `]`, `}`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `[1,]`, `[,1]`, `[1 2]`, `[1`, `[1,`, `{"a":1`, `{"a":[1}`,
		`{"a":1,"a":2}`, `[{"a":{"b":1,"b":1}}]`, `{"a":1,"\u0061":2}`,
		`01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `--1`, `1e400`, `-1e999`, strings.Repeat("9", 400), `tru`, `nul`, `falsy`, `NaN`,
		`"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\ud83d"`, `"\ude00"`, "\"\x00\"", "\"\n\"", "\"\x80\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"eight by\xff\"",
		deep(MaxDepth + 1),
	} {
		if fast, _ := scanned([]byte(raw)); fast >= 0 {
			t.Errorf("the scanner accepts %s", raw)
		}
	}
	if fast, strict := scanned([]byte(many(maxScannedNames + 1))); fast >= 0 || strict < 0 {
		t.Errorf("%d names in an object: the scanner ends at %d, jsontext at %d; want the scanner to fail", maxScannedNames+1, fast, strict)
	}
}

func FuzzScanner(f *testing.F) {
	for _, raw := range []string{whole, `{"a":"\u00e9\ud83d\ude00","b":[1,-0.5e10,true,null]}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if fast, strict := scanned(raw); fast >= 0 && fast != strict {
			t.Errorf("%q: the scanner ends at %d, jsontext at %d", raw, fast, strict)
		}
	})
}

// A record that was scanned has the same members as one that jsontext has read, and no faults.
func TestScannedRecordsAreThoseOfJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `\n`, `\ud83d\ude00`, ` `, `null`, `0`, `1e9`, `é`, "\xff", "\x01", `"x":1,`, `"context":{},`}
	accepted, refused := 0, 0
	for range 20_000 {
		raw := []byte(whole)
		for range rng.IntN(3) {
			at := rng.IntN(len(raw))
			piece := pieces[rng.IntN(len(pieces))]
			raw = append(raw[:at:at], append([]byte(piece), raw[min(at+rng.IntN(3), len(raw)):]...)...)
		}
		raw = trimSpace(raw)
		var fast, strict Decoder
		var one, other Trace
		if !fast.read(&one, raw, true) {
			refused++
			continue
		}
		accepted++
		strict.read(&other, raw, false)
		if len(strict.faults) > 0 || !reflect.DeepEqual(one, other) {
			t.Fatalf("%s\nis scanned as %+v\nand read as    %+v, with faults %v", raw, one, other, strict.faults)
		}
	}
	if accepted < 2000 || refused < 2000 {
		t.Errorf("%d records were scanned and %d were not: the test shows little", accepted, refused)
	}
}

// The records of real agents are scanned: reading them takes several times as long otherwise.
func TestUsualRecordsAreScanned(t *testing.T) {
	for _, line := range append(published.Lines(t, "corpus/traces.jsonl.gz"), []byte(whole)) {
		var d Decoder
		if !d.read(new(Trace), trimSpace(line), true) {
			t.Errorf("not scanned: %s", line[:min(len(line), 200)])
		}
	}
}
