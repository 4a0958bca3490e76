package ingest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plumbline/plumbline/pipeline/request"
)

func TestGzip(t *testing.T) {
	r := start(t)
	lines := traces("did:web:a", 1000)
	answer := r.send(http.MethodPost, "/v1/traces", packedBody(t, body(lines...)), ndjson, "Content-Encoding: gzip")
	if answer.code != http.StatusOK || answer.statuses(t)["accepted"] != len(lines) {
		t.Errorf("%d %.200s", answer.code, answer.text)
	}
	r.stored(uint64(len(lines)))
}

func TestBodiesThatCannotBeRead(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.MaxBodyBytes = windowBytes }))
	good := body(trace("did:web:a", "1"))
	zipped := packedBody(t, good).Bytes()
	for name, c := range map[string]struct {
		body    []byte
		headers []string
		code    int
		word    string
	}{
		"no media type":    {[]byte(good), nil, http.StatusUnsupportedMediaType, "media_type"},
		"a form":           {[]byte(good), []string{"Content-Type: application/x-www-form-urlencoded"}, http.StatusUnsupportedMediaType, "media_type"},
		"plain text":       {[]byte(good), []string{"Content-Type: text/plain"}, http.StatusUnsupportedMediaType, "media_type"},
		"brotli":           {[]byte(good), []string{ndjson, "Content-Encoding: br"}, http.StatusUnsupportedMediaType, "encoding"},
		"not gzip":         {[]byte(good), []string{ndjson, "Content-Encoding: gzip"}, http.StatusBadRequest, "encoding"},
		"gzip of no bytes": {nil, []string{ndjson, "Content-Encoding: gzip"}, http.StatusBadRequest, "encoding"},
		"truncated header": {zipped[:5], []string{ndjson, "Content-Encoding: gzip"}, http.StatusBadRequest, "truncated"},
		"truncated gzip":   {zipped[:len(zipped)/2], []string{ndjson, "Content-Encoding: gzip"}, http.StatusBadRequest, "truncated"},
		"undeclared gzip":  {zipped, []string{ndjson}, http.StatusBadRequest, "encoding"},
		"the same, whole":  {zipped, []string{"Content-Type: application/json"}, http.StatusBadRequest, "encoding"},
		"long gzip":        {append([]byte{0x1f, 0x8b}, make([]byte, windowBytes-2)...), []string{ndjson}, http.StatusBadRequest, "encoding"},
		"empty":            {nil, []string{ndjson}, http.StatusBadRequest, "empty"},
		"blank lines":      {[]byte("\n \r\n\t\n"), []string{ndjson}, http.StatusBadRequest, "empty"},
		"too large":        {make([]byte, windowBytes+1), []string{ndjson}, http.StatusRequestEntityTooLarge, "too_large"},
	} {
		answer := r.send(http.MethodPost, "/v1/traces", bytes.NewReader(c.body), c.headers...)
		if p := answer.problem(t); answer.code != c.code || p.Word != c.word {
			t.Errorf("%s: %d %s, want %d %s", name, answer.code, answer.text, c.code, c.word)
		}
	}
	r.stored(0)
}

// TestVersionsOfMediaTypes checks the versions of AAP section 11.1.
func TestVersionsOfMediaTypes(t *testing.T) {
	r := start(t)
	line, text := trace("did:web:a", "1"), card("did:web:a", "card-1")
	for kind, post := range map[string]func(string) reply{
		request.TypeTrace: func(header string) reply {
			return r.send(http.MethodPost, "/v1/traces", strings.NewReader(line), header)
		},
		request.TypeCard: func(header string) reply {
			return r.send(http.MethodPut, "/v1/cards/card-1", strings.NewReader(text), header)
		},
	} {
		for parameter, supported := range map[string]bool{
			"": true, ";version=0.1.0": true, `; Version="0.1.0"`: true, ";version=0.9": true, ";version=0": true, ";version=0.2.0-rc.1": true,
			";charset=utf-8": true, ";charset=utf-8; version=0.1.0": true,
			";version=1.0.0": false, ";version=1": false, ";version=10.1": false, `;version="2026.1"`: false,
			";version=": false, ";version": false, `;version=""`: false, ";version=v0.1": false, ";version=0.1.0.0": false, ";version=00.1": false,
			";version=0.": false, ";version=-0": false, ";version=latest": false, ";version=0;version=1": false, `;version="0 "`: false,
		} {
			answer := post("Content-Type: " + kind + parameter)
			if supported != (answer.code < 300) {
				t.Errorf("%s%s: %d %s", kind, parameter, answer.code, answer.text)
			}
			if !supported && (answer.code != http.StatusUnsupportedMediaType || answer.problem(t).Word != "media_type") {
				t.Errorf("%s%s: %d %s", kind, parameter, answer.code, answer.text)
			}
		}
		if answer := post("Content-Type: " + kind + ";version=2.0.0"); !strings.Contains(answer.text, "version=0.1.0") {
			t.Errorf("%s: the answer does not name the supported version: %s", kind, answer.text)
		}
	}
	// Other media types do not have the parameter: it is ignored there.
	if answer := r.post(body(line), "Content-Type: application/json; version=7"); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
}

// TestTooLargeOnTheWay reaches the size limit while the body is read. The lines read so far have
// their outcomes. The last line names the line from which to send again.
func TestTooLargeOnTheWay(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.MaxBodyBytes = windowBytes }))
	var lines []string // few and long, because only their size matters
	for i := range 800 {
		lines = append(lines, trace("did:web:a", fmt.Sprint(i), `"context":{"metadata":{"note":"`+strings.Repeat("x", 3000)+`"}}`))
	}
	for name, send := range map[string]struct {
		body    io.Reader
		headers []string
	}{
		"length unknown": {io.MultiReader(strings.NewReader(body(lines...))), []string{ndjson}},
		"gzip":           {packedBody(t, body(lines...)), []string{ndjson, "Content-Encoding: gzip"}},
	} {
		answer := r.send(http.MethodPost, "/v1/traces", send.body, send.headers...)
		outcomes := answer.lines(t)
		last := outcomes[len(outcomes)-1]
		if answer.code != http.StatusRequestEntityTooLarge || last.Status != "retry" || last.Line != len(outcomes) || len(outcomes) > len(lines) {
			t.Errorf("%s: %d, last line %+v", name, answer.code, last)
		}
		if counts := answer.statuses(t); counts["retry"] != 1 || counts["accepted"]+counts["duplicate"] != len(outcomes)-1 {
			t.Errorf("%s: %v", name, counts)
		}
	}
}

// TestTruncatedBody checks that the incomplete line at the end of a truncated body is not read as
// a line, even if it would be valid.
func TestTruncatedBody(t *testing.T) {
	lines := strings.Join(traces("did:web:a", 2), "\n")
	answer := offline(t).handle(t, io.MultiReader(strings.NewReader(lines), iotest.ErrReader(io.ErrUnexpectedEOF)))
	outcomes := answer.lines(t)
	if answer.code != http.StatusBadRequest || len(outcomes) != 2 || outcomes[0].Status != "accepted" || outcomes[1].Status != "retry" {
		t.Errorf("%d %s", answer.code, answer.text)
	}
}

func TestBodyTimesOut(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.RequestTimeout = 200 * time.Millisecond }))
	body, upload := io.Pipe() // nothing is ever written to it
	defer func() { _ = upload.Close() }()
	answer := r.send(http.MethodPost, "/v1/traces", body, ndjson)
	if answer.code != http.StatusRequestTimeout || answer.problem(t).Word != "timeout" {
		t.Errorf("%d %s", answer.code, answer.text)
	}
}

func TestGzipBomb(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.MaxBodyBytes = 2 * windowBytes }))
	for name, filling := range map[string]string{"one line": "x", "blank lines": "\n", "white space": " "} {
		bomb := packedBody(t, strings.Repeat(filling, 3*windowBytes))
		answer := r.send(http.MethodPost, "/v1/traces", bomb, ndjson, "Content-Encoding: gzip")
		if answer.code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.200s", name, answer.code, answer.text)
		}
	}
	r.stored(0)
}

func TestTooManyLines(t *testing.T) {
	answer := offline(t).handle(t, strings.NewReader(strings.Repeat("x\n", maxLines+1)))
	lines := answer.lines(t)
	if last := lines[len(lines)-1]; answer.code != http.StatusRequestEntityTooLarge || last.Line != maxLines+1 || last.Status != "retry" {
		t.Errorf("%d, last line %+v", answer.code, last)
	}
	if most := maxFaultBytes + 200*maxLines; len(answer.text) > most {
		t.Errorf("the answer has %d bytes, want at most %d", len(answer.text), most)
	}
}

// TestManyFaultsFitTheAnswer checks that lines with many faults, which would fill gigabytes,
// still get an answer of limited size.
func TestManyFaultsFitTheAnswer(t *testing.T) {
	faulty := strings.Replace(trace("did:web:a", "1"), `{"option_id":"a","description":"search"}`, strings.Repeat("{},", 100)+"{}", 1)
	answer := offline(t).handle(t, strings.NewReader(strings.Repeat(faulty+"\n", 1000)))
	lines := answer.lines(t)
	if answer.code != http.StatusBadRequest || len(lines) != 1000 {
		t.Fatalf("%d with %d lines", answer.code, len(lines))
	}
	if len(lines[0].Faults) < 100 || lines[999].Faults[0] != faultsLeftOff[0] {
		t.Errorf("first %d faults, last %+v", len(lines[0].Faults), lines[999])
	}
	if len(answer.text) > 2*maxFaultBytes {
		t.Errorf("the answer has %d bytes", len(answer.text))
	}
}
