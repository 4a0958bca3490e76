package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// filled pads a JSON object to the given size with white space before its end.
func filled(object string, size int) string {
	return object[:len(object)-1] + strings.Repeat(" ", size-len(object)) + object[len(object)-1:]
}

// A record exactly at a limit of docs/SCHEMA.md is admitted; one unit more is refused.
func TestRecordsAtTheirLimits(t *testing.T) {
	admit := func(raw string) error { _, err := Admit("", []byte(raw)); return err }
	register := func(raw string) error { _, err := DecodeCard([]byte(raw)); return err }
	handshake := func(raw string) error { _, err := DecodeHandshake([]byte(raw)); return err }
	keys := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, key(fmt.Sprint("k", i)))
		}
		return registering(t, all...)
	}
	of := func(kind MessageType, old string, element string) func(int) string {
		return func(n int) string { return strings.Replace(handshakeMessages[kind], old, list(n, element), 1) }
	}
	for name, c := range map[string]struct {
		read func(string) error
		raw  func(int) string
		most int
	}{
		"bytes of a trace":   {admit, func(n int) string { return filled(whole, n) }, MaxTraceBytes},
		"bytes of a card":    {register, func(n int) string { return filled(goodCard, n) }, MaxCardBytes},
		"bytes of a message": {handshake, func(n int) string { return filled(handshakeMessages[MessageCardRequest], n) }, MaxHandshakeBytes},
		"alternatives": {admit, func(n int) string {
			return edit(t, `{"option_id": "B"`, alternatives(n-2)+`{"option_id": "B"`)
		}, MaxAlternatives},
		"nesting, next to other arrays": {admit, func(n int) string {
			return edit(t, `"in raw"`, `[`+strings.Repeat("[", n-3)+strings.Repeat("]", n-3)+`,[]]`)
		}, MaxDepth},
		"days of retention":      {register, func(n int) string { return with(t, `"retention_days": 90`, fmt.Sprint(`"retention_days": `, n)) }, MaxRetentionDays},
		"digits of an amount":    {register, func(n int) string { return with(t, `99.5`, "0."+strings.Repeat("1", n-len("0."))) }, MaxIDBytes},
		"keys of a card":         {register, keys, MaxKeys},
		"values of a request":    {handshake, of(MessageCardRequest, `["honesty","privacy"]`, `"v"`), MaxHandshakeNames},
		"traces of a result":     {handshake, of(MessageTaskResult, `["tr-1","tr-2"]`, `"tr"`), MaxHandshakeNames},
		"conditions of a result": {handshake, of(MessageCoherenceResult, `["c"]`, `"c"`), MaxResultNames},
		"reasons of a result":    {handshake, of(MessageCoherenceResult, `[{"code":"value_conflict","description":"d"}]`, `{"code":"x"}`), MaxResultNames},
	} {
		if err := c.read(c.raw(c.most)); err != nil {
			t.Errorf("%s: %d are refused: %.300v", name, c.most, err)
		}
		if err := c.read(c.raw(c.most + 1)); err == nil {
			t.Errorf("%s: %d are accepted", name, c.most+1)
		}
	}
}

// The limit on received messages also holds for Plumbline's own messages.
func TestOwnMessagesAtTheirLimit(t *testing.T) {
	message := &CardRequest{Timestamp: time.Unix(0, 0)}
	empty, err := EncodeHandshake(message)
	if err != nil {
		t.Fatal(err)
	}
	message.RequestID = strings.Repeat("x", MaxHandshakeBytes-len(empty))
	if raw, err := EncodeHandshake(message); err != nil || len(raw) != MaxHandshakeBytes {
		t.Errorf("%d bytes, error %v", len(raw), err)
	}
	message.RequestID += "x"
	if _, err := EncodeHandshake(message); err == nil {
		t.Error("a message beyond the limit is encoded")
	}
}

// A number in a publisher's own member may be as great as a float64, however it is written (RFC
// 8259, section 6).
func TestNumbersOfPublishers(t *testing.T) {
	for number, taken := range map[string]bool{
		"1e308": true, "1e+308": true, "1E308": true, "1e309": false, "1e+309": false, "1E+309": false, "-1e309": false,
		"1.5e309": false, "1e99": true, "1e+99": true, "1e-999": true, "0e999": true,
		"1" + strings.Repeat("0", 199): true, "1" + strings.Repeat("0", 200): true, "1" + strings.Repeat("0", 308): true, "1" + strings.Repeat("0", 309): false,
		strings.Repeat("9", 200) + "e99": true, strings.Repeat("9", 210) + "e99": false, "1" + strings.Repeat("0", 208) + ".5e99": true,
		"0." + strings.Repeat("9", 400): true, "0." + strings.Repeat("9", 400) + "e309": false,
	} {
		for _, place := range []string{`"quantity": %s`, `"quantity": [%s]`, `"quantity": {"n":%s,"m":0}`} {
			_, err := Admit("", []byte(edit(t, `"quantity": 2`, fmt.Sprintf(place, number))))
			if taken != (err == nil) {
				t.Errorf("%.30s of %d bytes in %s: %.200v", number, len(number), place, err)
			}
		}
	}
}

// Whole numbers of metadata are at least 0. Costs are limited to numbers that every reader of
// JSON represents exactly.
func TestWholeNumbersOfMetadata(t *testing.T) {
	for number, want := range map[string]int64{"0": 0, "1": 1, "9": 9, "90": 90, "9007199254740991": MaxCostCents} {
		trace, err := Admit("", []byte(strings.Replace(edit(t, `"sequence_number": 7`, `"sequence_number": `+number), `"cost_cents": 2`, `"cost_cents": `+number, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if c := &trace.Context; !c.HasSequenceNumber || c.SequenceNumber != uint64(want) || c.Execution.CostCents != want {
			t.Errorf("%s: sequence number %d (%v), cost %d", number, c.SequenceNumber, c.HasSequenceNumber, c.Execution.CostCents)
		}
	}
}

// A fraction is in 0..1, bounds included (AAP section 5.5).
func TestFractions(t *testing.T) {
	for number, taken := range map[string]bool{"0": true, "-0.0": true, "1": true, "1.0": true, "1.0000001": false, "-0.0000001": false} {
		_, score := Admit("", []byte(edit(t, `"score": 0.85`, `"score": `+number)))
		_, confidence := Admit("", []byte(edit(t, `"confidence": 0.5`, `"confidence": `+number)))
		if taken != (score == nil) || taken != (confidence == nil) {
			t.Errorf("%s as a score: %v, as a confidence: %v", number, score, confidence)
		}
	}
}

// A refusal lists MaxFaults faults and says how many more there are.
func TestFaultsBeyondTheLimitAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		alternatives string
		more         int
	}{
		// Each alternative has a score outside 0..1, no option_id and no description. The trace
		// lacks three members of its decision and five of its own.
		"as many as are listed": {strings.Repeat(`{"score":7},`, 30) + `{"option_id":"o"},{"option_id":"p"}`, 0},
		"one more":              {strings.Repeat(`{"score":7},`, 30) + `{"option_id":"o"},{"option_id":"p"},{"option_id":"q"}`, 1},
		"a hundred more":        {strings.TrimSuffix(strings.Repeat(`{"score":7},`, 64), ","), 100},
	} {
		_, err := Admit("", []byte(`{"decision":{"alternatives_considered":[`+c.alternatives+`]}}`))
		var refusal *Refusal
		if !errors.As(err, &refusal) || len(refusal.Faults) < MaxFaults {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []Fault{{Message: fmt.Sprintf("and %d more faults", c.more)}}
		if c.more == 0 {
			want = nil
		}
		if got := refusal.Faults[MaxFaults:]; !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestPlainNames(t *testing.T) {
	for name, plain := range map[string]bool{
		"default": true, "A-Z_09": true, "_": true, "-": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a.b": false, "a b": false, ".a": false, "a/": false, "ä": false,
	} {
		if PlainName(name) != plain {
			t.Errorf("PlainName(%q) is %v", name, !plain)
		}
	}
}
