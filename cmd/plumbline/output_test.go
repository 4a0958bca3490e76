package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

func TestJSONIsOneLineWithoutControls(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x2030) {
		all.WriteRune(r)
	}
	var text strings.Builder
	if err := writeJSON(&text, all.String()); err != nil {
		t.Fatal(err)
	}
	line, found := strings.CutSuffix(text.String(), "\n")
	if at := strings.IndexFunc(line, unicode.IsControl); !found || at >= 0 || strings.ContainsAny(line, "\u2028\u2029") {
		t.Errorf("control at %d of %q", at, line)
	}
	var back string
	if err := json.Unmarshal([]byte(line), &back); err != nil || back != all.String() {
		t.Errorf("read back as %q, error %v", back, err)
	}
}

// An error that quotes text of others keeps its lines and cannot control the terminal.
func TestErrorTextCannotControlTheTerminal(t *testing.T) {
	err := errors.Join(errors.New("ingest answered \x1b[31mred"), errors.New("Continue with: plumbline send"))
	if text, want := errorText(err), `"ingest answered \x1b[31mred"`+"\nContinue with: plumbline send"; text != want {
		t.Errorf("text is %s, want %s", text, want)
	}
}
