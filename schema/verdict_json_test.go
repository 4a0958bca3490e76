package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Bundles contain verdicts in the form of json.Marshal, and signatures cover it.
func TestVerdictAppendJSON(t *testing.T) {
	same := func(t interface{ Fatalf(string, ...any) }, v *Verdict) {
		want, wantErr := json.Marshal(v)
		got, err := v.AppendJSON([]byte("before"))
		if wantErr != nil {
			if err == nil || string(got) != "before" {
				t.Fatalf("%+v: error %v and %q, want an error as json.Marshal has: %v", v, err, got, wantErr)
			}
			return
		}
		if err != nil || string(got) != "before"+string(want) {
			t.Fatalf("%s (%v), want\n%s", got, err, want)
		}
	}
	same(t, &Verdict{})
	texts := []string{"", "plain", `quote " and \`, "<&>", "\u2028\u2029 é 😀", "\x00\x1f\x7f", "\xff broken \xed\xa0\x80", "line\r\n\tend"}
	for _, text := range texts {
		v := new(Verdict)
		fill(reflect.ValueOf(v).Elem(), text)
		same(t, v)
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -0.25, 1e-6, 9.99e-7, 1e20, 1e21, -1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1)} {
		same(t, &Verdict{SimilarityScore: f, Metadata: Metadata{Similarity: SimilarityDetails{Similarities: []float64{f}, Trend: f}}})
	}
	for _, at := range []time.Time{time.Unix(0, 1).UTC(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 3, 4, 5, 600, time.FixedZone("", 3600))} {
		same(t, &Verdict{Timestamp: at})
		same(t, &Verdict{Metadata: Metadata{CardRevokedAt: at}})
	}
	rapid.Check(t, func(r *rapid.T) {
		v := new(Verdict)
		fill(reflect.ValueOf(v).Elem(), rapid.String().Draw(r, "text"))
		v.SimilarityScore = rapid.Float64().Draw(r, "score")
		v.Violations = v.Violations[:rapid.IntRange(0, 2).Draw(r, "violations")]
		same(r, v)
	})
}

// fill sets every member of a value, also those that a later version adds: texts to text, numbers to
// other than 0, and slices to two elements.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(len(text)) + 1)
	case reflect.Float64:
		v.SetFloat(0.1 * float64(len(text)+1))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), text)
		fill(v.Index(1), strings.Repeat(text, 2))
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = time.Unix(int64(len(text)), 5).UTC()
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Array:
		v.Index(0).SetUint(uint64(len(text)) & 0xff)
	default:
		panic("a member of another kind: " + v.Kind().String())
	}
}

func BenchmarkVerdictJSON(b *testing.B) {
	v := new(Verdict)
	fill(reflect.ValueOf(v).Elem(), "some text")
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for b.Loop() {
			out, _ = v.AppendJSON(out[:0])
		}
	})
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
}
