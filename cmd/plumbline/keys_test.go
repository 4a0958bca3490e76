package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline/plumbline/aivs/keyring"
)

// appendLine puts a line at the end of a file.
func appendLine(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		ts.Fatalf("usage: appendline FILE TEXT")
	}
	text := ts.ReadFile(args[0]) + args[1] + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// newest sets a variable to the public key that a key list names last.
func newest(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		ts.Fatalf("usage: newest LIST VARIABLE")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	var list keyring.List
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &list))
	ts.Setenv(args[1], list.Keys[len(list.Keys)-1].PublicKey)
}
