package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/ledger"
)

func TestCanonicalAtTheLimits(t *testing.T) {
	filled := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	brackets := strings.Repeat("[", 2*ledger.MaxDepth)
	for name, c := range map[string]struct {
		data string
		want bool
	}{
		"as long as data may be":     {filled(ledger.MaxDataBytes), true},
		"a byte longer":              {filled(ledger.MaxDataBytes + 1), false},
		"as deep as data may be":     {nested(ledger.MaxDepth), true},
		"a level deeper":             {nested(ledger.MaxDepth + 1), false},
		"many arrays side by side":   {`{"a":[` + strings.Repeat("[],", 2*ledger.MaxDepth) + `[]]}`, true},
		"many objects side by side":  {`{"a":[` + strings.Repeat("{},", 2*ledger.MaxDepth) + `{}]}`, true},
		"brackets in a text":         {`{"a":"` + brackets + `"}`, true},
		"a quote before them":        {`{"a":"\"` + brackets + `"}`, true},
		"a backslash at the end":     {`{"a":"\\","b":"` + brackets + `"}`, true},
		"a number too large to hold": {`{"a":1e400}`, false},
	} {
		if _, err := ledger.Canonical([]byte(c.data)); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpeningIsWrittenWhole(t *testing.T) {
	hash := ledger.HashEntry(ledger.Hash{}, 0, ledger.Genesis, []byte("{}"))
	opening := ledger.Opening{Agent: "a\"", Created: time.Date(2026, 3, 1, 13, 0, 0, 5, time.FixedZone("", 3600)), ContinuesFrom: &hash}
	data, err := opening.Data()
	want := fmt.Sprintf(`{"agent":"a\"","continues_from":"%s","created":"2026-03-01T12:00:00.000000005Z","version":"1.0"}`, hash)
	if err != nil || string(data) != want {
		t.Errorf("%s, error %v, want %s", data, err, want)
	}
}

func TestLinesAtTheLimits(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", ledger.MaxDataBytes-len(`{"a":""}`)) + `"}`
	file, _ := build(t, opening, `{"n":1}`, long, `{"n":2}`)
	summary, err := validate(file, nil)
	if err != nil || summary.Entries != 4 || summary.Counts[ledger.Claim] != 3 || summary.Counts[ledger.Genesis] != 1 {
		t.Errorf("%+v, error %v", summary, err)
	}
	_, err = validate(append(file, bytes.Repeat([]byte("x"), ledger.MaxLineBytes+1)...), nil)
	var fault *ledger.Fault
	if !errors.As(err, &fault) || fault.Kind != ledger.FaultForm || fault.Line != 5 || !strings.Contains(fault.Message, "a line of more than") {
		t.Errorf("a line beyond the limit: %v", err)
	}
	for text, line := range map[string]int{"": 1, "\n": 1} {
		if _, err := validate([]byte(text), nil); !errors.As(err, &fault) || fault.Kind != ledger.FaultForm || fault.Line != line {
			t.Errorf("a file of %q: %+v, want a fault at line %d", text, fault, line)
		}
	}
	for seq, kind := range map[string]string{"9007199254740991": ledger.FaultGap, "9007199254740992": ledger.FaultForm} {
		changed := bytes.Replace(file, []byte(`"seq":1`), []byte(`"seq":`+seq), 1)
		if _, err := validate(changed, nil); !errors.As(err, &fault) || fault.Kind != kind {
			t.Errorf("seq %s: %v, want fault %s", seq, err, kind)
		}
	}
}

func TestContinuationNamesBothHashes(t *testing.T) {
	first, _ := build(t, opening, `{"n":1}`)
	before, err := validate(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := ledger.HashEntry(ledger.Hash{}, 0, ledger.Genesis, []byte("{}"))
	for want, from := range map[string]*ledger.Hash{
		fmt.Sprintf("the file before ends with %s, this one continues from %s", before.Last, other): &other,
		fmt.Sprintf("the file before ends with %s, this one continues from nothing", before.Last):   nil,
	} {
		next := opening
		next.ContinuesFrom = from
		file, _ := build(t, next)
		if _, err := validate(file, &before); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
