package ingest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func TestAcceptedIsStored(t *testing.T) {
	r := start(t)
	// White space around a record is not part of it. Lines may end with CR LF. Blank lines count
	// in the line numbers, and have no outcome.
	a, b := trace("did:web:a", "1"), trace("did:web:b", "2", `"unknown":{"x":[1,2]}`)
	b = strings.Replace(b, "card-1", "card-2", 1)
	r.putCard("card-1", card("did:web:a", "card-1"))
	r.putCard("card-2", card("did:web:b", "card-2"))
	answer := r.post("\n  " + a + " \r\n\r\n" + b)
	if answer.code != http.StatusOK || answer.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d %s", answer.code, answer.header)
	}
	want := `{"line":2,"trace_id":"1","status":"accepted","faults":[]}` + "\n" +
		`{"line":4,"trace_id":"2","status":"accepted","faults":[],"warnings":[{"code":"ignored_member","pointer":"/unknown",` +
		`"message":"is not a known member: it is stored and ignored"}]}` + "\n"
	if answer.text != want {
		t.Errorf("answer %s, want %s", answer.text, want)
	}
	messages := r.broker.Read(stream.Traces, stream.VerifierConsumer, 2)
	for i, want := range []string{a, b} {
		if string(messages[i].Data) != want {
			t.Errorf("stored %s, want %s", messages[i].Data, want)
		}
	}
	if messages[0].Agent != "did:web:a" || messages[1].Agent != "did:web:b" {
		t.Errorf("stored for %s and %s", messages[0].Agent, messages[1].Agent)
	}
}

func TestOrderIsKeptOverChunks(t *testing.T) {
	r := start(t)
	lines := traces("did:web:a", 2*chunkLines+500)
	if answer := r.post(body(lines...)); answer.code != http.StatusOK || len(answer.lines(t)) != len(lines) {
		t.Fatalf("%d with %d lines", answer.code, len(answer.lines(t)))
	}
	for i, m := range r.broker.Read(stream.Traces, stream.VerifierConsumer, len(lines)) {
		if string(m.Data) != lines[i] {
			t.Fatalf("message %d is %s", i, m.Data)
		}
	}
}

func TestSameLineTwice(t *testing.T) {
	r := start(t)
	first, second := trace("did:web:a", "1"), trace("did:web:a", "2")
	if answer := r.post(body(first, first)); answer.code != http.StatusOK ||
		answer.statuses(t)["accepted"] != 1 || answer.statuses(t)["duplicate"] != 1 {
		t.Errorf("in one request: %d %s", answer.code, answer.text)
	}
	answer := r.post(body(first, second))
	lines := answer.lines(t)
	if answer.code != http.StatusOK || lines[0].Status != "duplicate" || lines[1].Status != "accepted" {
		t.Errorf("in the next request: %d %s", answer.code, answer.text)
	}
	r.stored(2)
}

func TestOneBrokenLineAmongAThousand(t *testing.T) {
	r := start(t)
	lines := traces("did:web:a", 1000)
	lines[499] = `{"trace_id":"broken","agent_id":"did:web:a","action":{"type":]}`
	answer := r.post(body(lines...))
	if counts := answer.statuses(t); answer.code != http.StatusMultiStatus || counts["accepted"] != 999 || counts["refused"] != 1 {
		t.Fatalf("%d %v", answer.code, counts)
	}
	broken := answer.lines(t)[499]
	if broken.Line != 500 || broken.TraceID != "broken" || len(broken.Faults) != 1 || broken.Faults[0].Pointer != "/action" {
		t.Errorf("outcome %+v", broken)
	}
	r.stored(999)
	letter := r.letters(1)[0]
	if string(letter.Data) != lines[499] || letter.Stage != "ingest" || letter.Reason != schema.ReasonInvalidJSON ||
		letter.Agent != "did:web:a" || len(letter.Faults) != 1 {
		t.Errorf("dead letter %+v", letter)
	}
}

func TestHugeTraceIsRefusedAlone(t *testing.T) {
	r := start(t)
	for _, size := range []int{schema.MaxTraceBytes, 2_000_000, windowBytes, 5 * windowBytes} {
		id := fmt.Sprint(size)
		huge := trace("did:web:a", "huge", `"blob":"`+strings.Repeat("x", size)+`"`)
		answer := r.post(body(trace("did:web:a", "before "+id), huge, trace("did:web:a", "after "+id)))
		lines := answer.lines(t)
		if answer.code != http.StatusMultiStatus || len(lines) != 3 || lines[0].Status != "accepted" || lines[2].Status != "accepted" {
			t.Errorf("%d bytes: %d %.500s", size, answer.code, answer.text)
			continue
		}
		if lines[1].Line != 2 || lines[1].Status != "refused" || !strings.Contains(lines[1].Faults[0].Message, "a trace may have") {
			t.Errorf("%d bytes: outcome %+v", size, lines[1])
		}
	}
	r.stored(8)
	for _, letter := range r.letters(1) { // the beginnings of all four are equal
		if letter.Reason != schema.ReasonTooLarge || len(letter.Data) > excerptBytes {
			t.Errorf("dead letter of %d bytes, reason %s", len(letter.Data), letter.Reason)
		}
	}
}

func TestRefusedWithPointer(t *testing.T) {
	r := start(t)
	good := trace("did:web:a", "1")
	for name, c := range map[string]struct{ line, pointer string }{
		"duplicate key":     {strings.Replace(good, `"card_id"`, `"card_id":"x","card_id"`, 1), "/card_id"},
		"year 1920":         {strings.Replace(good, "2026-01-31", "1920-01-31", 1), "/timestamp"},
		"year 2200":         {strings.Replace(good, "2026-01-31", "2200-01-31", 1), "/timestamp"},
		"no zone":           {strings.Replace(good, "12:30:00Z", "12:30:00", 1), "/timestamp"},
		"unknown category":  {strings.Replace(good, `"bounded"`, `"unbound"`, 1), "/action/category"},
		"selected unknown":  {strings.Replace(good, `"selected":"a"`, `"selected":"b"`, 1), "/decision/selected"},
		"synthetic session": {trace("did:web:a", "1", `"context":{"session_id":"~utc-2026-01-31"}`), "/context/session_id"},
		"no card":           {strings.Replace(good, `"card_id":"card-1",`, "", 1), "/card_id"},
	} {
		answer := r.post(body(c.line))
		lines := answer.lines(t)
		if answer.code != http.StatusBadRequest || len(lines) != 1 || lines[0].Status != "refused" || lines[0].Faults[0].Pointer != c.pointer {
			t.Errorf("%s: %d %s, want 400 with %s", name, answer.code, answer.text, c.pointer)
		}
	}
	r.stored(0)
}

// TestDataIsNotJudgedHere checks that content that looks hostile in a field is data here. The
// verifier decides whether the card is known.
func TestDataIsNotJudgedHere(t *testing.T) {
	r := start(t)
	lines := []string{
		trace("did:web:a", "1", `"context":{"session_id":"../../etc/passwd"}`),
		strings.Replace(trace("did:web:a", "2"), "card-1", "never registered", 1),
		strings.Replace(trace("did:web:a", "3"), "2026", "2099", 1),
		trace("../../etc/passwd", "4"),
		trace("agent.*.>", "5"),
		trace(strings.Repeat("\u00e4", schema.MaxIDBytes/2), "6"),
	}
	if answer := r.post(body(lines...)); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
	for i, m := range r.broker.Read(stream.Traces, stream.VerifierConsumer, len(lines)) {
		if string(m.Data) != lines[i] {
			t.Errorf("stored %s, want %s", m.Data, lines[i])
		}
	}
}

func TestSingleTrace(t *testing.T) {
	r := start(t)
	pretty := strings.ReplaceAll(trace("did:web:a", "1"), ",", ",\n  ")
	for i, kind := range []string{"application/aap-trace+json", "application/json; charset=utf-8"} {
		answer := r.send(http.MethodPost, "/v1/traces", strings.NewReader("\n"+pretty+"\n"), "Content-Type: "+kind)
		want := []string{"accepted", "duplicate"}[i]
		if lines := answer.lines(t); answer.code != http.StatusOK || len(lines) != 1 || lines[0].Status != want || lines[0].Line != 1 {
			t.Errorf("%s: %d %s", kind, answer.code, answer.text)
		}
	}
	if m := r.broker.Read(stream.Traces, stream.VerifierConsumer, 1); string(m[0].Data) != pretty {
		t.Errorf("stored %s", m[0].Data)
	}
	two := r.send(http.MethodPost, "/v1/traces", strings.NewReader(body(traces("did:web:a", 2)...)), "Content-Type: application/json")
	if two.code != http.StatusBadRequest || two.lines(t)[0].Status != "refused" {
		t.Errorf("two records as one: %d %s", two.code, two.text)
	}
}

// A refusal says what to do where it is clear what the publisher meant.
func TestRefusalsSayWhatToDo(t *testing.T) {
	r := start(t)
	const perLine = "put each trace on one line (jq -c), or send one trace a request with Content-Type: application/json"
	for line, want := range map[string]string{
		"{":                                 "the line ends in the middle of a JSON value (byte 1): " + perLine,
		`{"trace_id"`:                       "the line ends in the middle of a JSON value (byte 11): " + perLine,
		"[" + trace("did:web:a", "1") + "]": "this is an array: send one JSON object per line, not an array (jq -c '.[]')",
		`"text"`:                            "want an object, found a string",
		"7":                                 "want an object, found a number",
	} {
		if lines := r.post(body(line)).lines(t); len(lines) != 1 || lines[0].Faults[0].Message != want {
			t.Errorf("%s: %+v, want %s", line, lines, want)
		}
	}
	whole := r.send(http.MethodPost, "/v1/traces", strings.NewReader(`{"trace_id"`), "Content-Type: application/json").lines(t)
	if whole[0].Faults[0].Message != "ends in the middle of a JSON value (byte 11)" {
		t.Errorf("one trace a request: %+v", whole)
	}
}
