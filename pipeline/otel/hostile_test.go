package otel

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/plumbline/plumbline/schema"
)

// A decoded request takes no more memory than Size announces, whatever its parts are: the decoder makes a
// message of each null in a list of messages.
func TestMemoryIsAnnounced(t *testing.T) {
	list := func(element string) string { return "[" + strings.Repeat(element+",", 50_000) + element + "]" }
	spans := func(text string) string { return `{"resourceSpans":[{"scopeSpans":[{"spans":` + text + `}]}]}` }
	for name, text := range map[string]string{
		"spans of null":      spans(list("null")),
		"events of null":     spans(`[{"events":` + list("null") + `}]`),
		"links of null":      spans(`[{"links":` + list("null") + `}]`),
		"attributes of null": spans(`[{"attributes":` + list("null") + `}]`),
		"values of null":     spans(`[{"attributes":[{"key":"a","value":{"arrayValue":{"values":` + list("null") + `}}}]}]`),
		"members of null":    spans(`[{"attributes":[{"key":"a","value":{"kvlistValue":{"values":` + list("null") + `}}}]}]`),
		"resources of null":  `{"resourceSpans":` + list("null") + `}`,
		"keys":               `{"resourceSpans":[{"resource":{"entityRefs":[{"idKeys":` + list(`""`) + `}]}}]}`,
		"spans of nothing":   spans(list("{}")),
	} {
		size, err := Size(JSON, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		decoded, err := Decode(JSON, []byte(text))
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(decoded)
		if taken := int64(after.HeapAlloc) - int64(before.HeapAlloc); err != nil || taken > size {
			t.Errorf("%s: takes %d bytes, announced are %d: %v", name, taken, size, err)
		}
	}
}

// What follows a request is refused, because it would be lost: lines of JSON, for example.
func TestSecondRequestIsRefused(t *testing.T) {
	one := `{"resourceSpans":[{"resource":{"attributes":[{"key":"]}\"","value":{"intValue":"7"}}]},"scopeSpans":[{"spans":[{},{"events":[]}]}]}]}`
	want := 2 * len(one)
	for text, good := range map[string]bool{one: true, one + " \r\n\t": true, one + "\n" + one: false, one + "x": false, one + "0": false, one + "]": false, "": false, "x": false} {
		size, err := Size(JSON, []byte(text))
		if (err == nil) != good || good && size-int64(2*(len(text)-len(one))) != int64(want+partBytes*13) {
			t.Errorf("%q: %d, %v", text, size, err)
		}
	}
}

// mapping returns how many bytes are allocated and how long it takes to map a span and to write its letter.
func mapping(change func(ptrace.Span, pcommon.Map)) (allocated int64, took time.Duration, r Result, letter []byte) {
	resource, span := toolCall(change)
	scope := pcommon.NewInstrumentationScope()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	r = Map(resource, scope, span)
	letter = Letter(resource, scope, span)
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), took, r, letter
}

// A text is six times as long in JSON if it has control characters only. That takes no memory.
func TestLongTextsTakeNoMemory(t *testing.T) {
	const size = 8 << 20
	long := strings.Repeat("\x01", size)
	for name, change := range map[string]func(ptrace.Span, pcommon.Map){
		"an attribute": func(_ ptrace.Span, a pcommon.Map) { a.PutStr("any", long) },
		"bytes":        func(_ ptrace.Span, a pcommon.Map) { a.PutEmptyBytes("any").FromRaw([]byte(long)) },
		"a list":       func(_ ptrace.Span, a pcommon.Map) { a.PutEmptySlice("any").AppendEmpty().SetStr(long) },
		"a key":        func(_ ptrace.Span, a pcommon.Map) { a.PutEmptyMap("any").PutStr(long, "") },
		"arguments":    func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.tool.call.arguments", long) },
		"the tool":     func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.tool.name", long) },
		"the action":   func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"action.name", long) },
		"an error": func(s ptrace.Span, _ pcommon.Map) {
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Status().SetMessage(long)
		},
		"a name": func(s ptrace.Span, _ pcommon.Map) { s.SetName(long) },
	} {
		// A text that may be JSON is copied to be read; the letter copies the span; bytes are copied to be read.
		if allocated, _, r, letter := mapping(change); allocated > 4*size {
			t.Errorf("%s: %d bytes are allocated for %d: %v", name, allocated, size, r.Faults)
		} else if len(letter) > schema.MaxTraceBytes || !bytes.Contains(letter, []byte(attributeIncomplete)) {
			t.Errorf("%s: the dead letter is %.200s", name, letter)
		}
	}
}

// Many attributes take a few times as long as encoding/json takes to sort and encode them. In proportion to the square of their
// number they would take a hundred times as long.
func TestManyAttributes(t *testing.T) {
	const many, rounds = 20_000, 5
	numbered := func(all map[string]any) map[string]any {
		for i := range many {
			all[fmt.Sprintf("%060d", i)] = i
		}
		return all
	}
	for name, add := range map[string]func(pcommon.Map) error{
		"of the span": func(a pcommon.Map) error { return a.FromRaw(numbered(a.AsRaw())) },
		"of a value":  func(a pcommon.Map) error { return a.PutEmptyMap("any").FromRaw(numbered(map[string]any{})) },
	} {
		shortest, floor := time.Hour, time.Hour // other work on the machine makes some rounds longer
		for range rounds {
			_, took, _, _ := mapping(func(_ ptrace.Span, a pcommon.Map) {
				if err := add(a); err != nil {
					t.Fatal(err)
				}
				raw, began := a.AsRaw(), time.Now()
				if _, err := json.Marshal(raw); err != nil {
					t.Fatal(err)
				}
				floor = min(floor, time.Since(began))
			})
			shortest = min(shortest, took)
		}
		ratio := shortest.Seconds() / floor.Seconds()
		t.Logf("%s: %s, %.1f times what encoding/json takes", name, shortest, ratio)
		if ratio > 25 {
			t.Errorf("%s: %d attributes take %.0f times as long as encoding/json", name, many, ratio)
		}
	}
}

// A text that is written in pieces has the same JSON, and what is too long the digest of that.
func TestPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "\x01", "\xff", "\xe2\x82", "\u20ac", "\U0001F600", "\xed\xa0\x80", "\uFFFD", `"`}
	for range 50 {
		var b strings.Builder
		for b.Len() < 3*pieceBytes {
			b.WriteString(strings.Repeat(alphabet[random.IntN(len(alphabet))], 1+random.IntN(2000)))
		}
		v := pcommon.NewValueStr(b.String())
		whole := quote(b.String())
		if got := encode(v, len(whole)); !bytes.Equal(got, whole) {
			t.Fatalf("%q is written as %q", b.String(), got)
		}
		if got, want := string(encode(v, len(whole)-1)), fmt.Sprintf(`{"omitted_bytes":%d,"sha256":"%x"}`, len(whole), sha256.Sum256(whole)); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// What a span says is not turned into what it does not say.
func TestMisreadings(t *testing.T) {
	admit := func(r Result) *schema.Trace {
		trace, err := schema.Admit("", r.Trace)
		if err != nil {
			t.Fatalf("%v %v %s", err, r.Faults, r.Trace)
		}
		return trace
	}
	late := mapCall(func(s ptrace.Span, _ pcommon.Map) { s.SetStartTimestamp(1<<64 - 1); s.SetEndTimestamp(1<<64 - 1) })
	if late.Trace != nil || late.Reason != ReasonNoTime || late.Faults[0].Message != "timestamp is the start of the span, which is missing or out of range (no_timestamp)" {
		t.Errorf("a start in the year 2554: %s %v", late.Trace, late.Faults)
	}
	succeeded := func(s ptrace.Span, a pcommon.Map) {
		s.Status().SetCode(ptrace.StatusCodeOk)
		a.PutStr("error.type", "timeout")
		s.Events().AppendEmpty().SetName("exception")
	}
	if trace := admit(mapCall(succeeded)); trace.Context.Execution.Error != "" {
		t.Errorf("a span with status Ok has the error %q", trace.Context.Execution.Error)
	}
	typed := mapCall(func(_ ptrace.Span, a pcommon.Map) { a.PutInt("gen_ai.tool.name", 7) })
	if len(typed.Faults) != 1 || !strings.Contains(typed.Faults[0].Message, "or it is empty or not a text") {
		t.Errorf("a name that is a number: %v", typed.Faults)
	}
	twins := mapCall(func(_ ptrace.Span, a pcommon.Map) { a.PutStr("any\xff", "first"); a.PutStr("any\xfe", "second") })
	if admit(twins); !strings.Contains(string(twins.Trace), `"any`+"\uFFFD"+`":"first"`) {
		t.Errorf("two names that are not UTF-8: %s", twins.Trace)
	}
	resource, span := toolCall(func(ptrace.Span, pcommon.Map) {})
	resource.Attributes().PutStr(prefix+"context.session_id", "s-1")
	if r := Map(resource, pcommon.NewInstrumentationScope(), span); len(r.Unread) != 1 || r.Unread[0] != prefix+"context.session_id" {
		t.Errorf("an attribute of the resource that is not read: %v", r.Unread)
	}
}

// The letter of a span gives the same result as the span, and its own letter is itself. That of a part of
// a span is refused.
func TestLetters(t *testing.T) {
	decode := func(letter []byte) (pcommon.Resource, pcommon.InstrumentationScope, ptrace.Span) {
		r := ptraceotlp.NewExportRequest()
		if err := r.UnmarshalJSON(letter); err != nil {
			t.Fatalf("%v in %.300s", err, letter)
		}
		in := r.Traces().ResourceSpans().At(0)
		return in.Resource(), in.ScopeSpans().At(0).Scope(), in.ScopeSpans().At(0).Spans().At(0)
	}
	resource, span := toolCall(func(s ptrace.Span, a pcommon.Map) {
		a.PutStr("gen_ai.tool.call.arguments", `{"a":1}`)
		s.Status().SetCode(ptrace.StatusCodeError)
		event := s.Events().AppendEmpty()
		event.SetName("exception")
		event.Attributes().PutStr("exception.message", "no route")
	})
	resource.Attributes().PutStr("service.name", "shop")
	resource.Attributes().PutStr("host.name", "secret")
	scope := pcommon.NewInstrumentationScope()
	scope.SetName("library")
	letter := Letter(resource, scope, span)
	if got, want := Map(decode(letter)), Map(resource, scope, span); want.Trace == nil || !bytes.Equal(got.Trace, want.Trace) || bytes.Contains(letter, []byte("host.name")) {
		t.Errorf("the letter gives\n%s\nand the span\n%s", got.Trace, want.Trace)
	}
	span.Attributes().PutStr("gen_ai.tool.call.result", strings.Repeat("x", schema.MaxTraceBytes))
	part := Letter(resource, scope, span)
	if r := Map(decode(part)); r.Trace != nil || r.Reason != ReasonIncomplete || bytes.Contains(part, []byte("tool.call.result")) || !bytes.Contains(part, []byte("gen_ai.tool.name")) {
		t.Errorf("the letter of a part: %v in %.300s", r, part)
	}
	for _, letter := range [][]byte{letter, part} {
		if again := Letter(decode(letter)); !bytes.Equal(again, letter) {
			t.Errorf("the letter of a letter is\n%s\nand not\n%s", again, letter)
		}
	}
}
