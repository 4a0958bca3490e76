package wire

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

func drawReceipt(t *rapid.T) schema.Receipt {
	r := schema.Receipt{
		AgentID:   rapid.StringN(1, 20, -1).Draw(t, "agent"),
		SessionID: rapid.StringN(1, 20, -1).Draw(t, "session"),
		Stream:    rapid.SampledFrom([]int64{0, 0, 1, 1_700_000_000_123_456_789}).Draw(t, "stream"),
		Sequence:  rapid.Uint64().Draw(t, "sequence"),
		EventTime: time.Unix(rapid.Int64Range(0, 4_291_747_199).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
		Bytes:     rapid.IntRange(0, schema.MaxTraceBytes).Draw(t, "bytes"),
		End:       rapid.Bool().Draw(t, "end"),
	}
	copy(r.Digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
	return r
}

func TestReceiptsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(drawReceipt)).Draw(t, "receipts")
		size := rapid.IntRange(1, 2000).Draw(t, "size")
		messages, err := receiptsOf(0, want, size)
		if err != nil {
			t.Fatal(err)
		}
		var got []schema.Receipt
		for _, m := range messages {
			if len(m.Data) > size+1000 {
				t.Fatalf("a body has %d bytes, want about %d", len(m.Data), size)
			}
			var end *EndRequest
			if got, end, err = DecodeReceipts(m.Data, got); err != nil || end != nil {
				t.Fatalf("decode %s: end %v, error %v", m.Data, end, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

const goodReceipt = `{"agent_id":"a","session_id":"s","sequence":7,` +
	`"digest":"0000000000000000000000000000000000000000000000000000000000000000","event_time":"2026-01-02T03:04:05Z"}`

func TestDecodeReceiptsIsStrict(t *testing.T) {
	if got, _, err := DecodeReceipts([]byte(`{"receipts":[`+goodReceipt+`]}`), nil); err != nil || len(got) != 1 {
		t.Fatalf("the valid one: %v, %v", got, err)
	}
	replace := func(old, by string) string {
		return `{"receipts":[` + strings.Replace(goodReceipt, old, by, 1) + `]}`
	}
	for name, bad := range map[string]string{
		"nothing":           ``,
		"no object":         `[]`,
		"no member":         `{}`,
		"both members":      `{"receipts":[],"end":{"agent_id":"a","session_id":"s","through_sequence":1}}`,
		"unknown member":    `{"receipt":[]}`,
		"something behind":  `{"receipts":[]} {}`,
		"no list":           `{"receipts":{}}`,
		"cut short":         `{"receipts":[` + goodReceipt,
		"unknown in one":    replace(`"agent_id"`, `"Agent_id"`),
		"missing in one":    replace(`"sequence":7,`, ``),
		"twice in one":      replace(`"sequence":7`, `"sequence":7,"sequence":7`),
		"negative sequence": replace(`7`, `-7`),
		"text for a number": replace(`7`, `"7"`),
		"number for text":   replace(`"a"`, `1`),
		"negative size":     replace(`"sequence":7`, `"sequence":7,"bytes":-1`),
		"short digest":      replace(`00`, ``),
		"no time":           replace(`2026`, `20x6`),
		"no boolean":        replace(`"sequence":7`, `"sequence":7,"end":1`),
		"bad UTF-8":         replace(`"a"`, "\"\xff\""),
		"end incomplete":    `{"end":{"agent_id":"a"}}`,
		"end unknown":       `{"end":{"agent_id":"a","session_id":"s","through":1}}`,
	} {
		if got, end, err := DecodeReceipts([]byte(bad), nil); err == nil {
			t.Errorf("%s: decoded as %v, %v", name, got, end)
		}
	}
}

func BenchmarkDecodeReceipt(b *testing.B) {
	body := []byte(`{"receipts":[` + strings.Repeat(goodReceipt+",", 999) + goodReceipt + `]}`)
	b.ReportAllocs()
	var receipts []schema.Receipt
	var err error
	for done := 0; done < b.N; done += 1000 {
		if receipts, _, err = DecodeReceipts(body, receipts[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
