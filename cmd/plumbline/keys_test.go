package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline/plumbline/aivs/keyring"
)

// appendLine appends a line to a file.
func appendLine(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		ts.Fatalf("usage: appendline FILE TEXT")
	}
	text := ts.ReadFile(args[0]) + args[1] + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// hides requires that the output of the last command contains no private key of a file.
func hides(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: hides KEYFILE")
	}
	seed, printed := []byte(ts.ReadFile(args[0])), ts.ReadFile("stdout")+ts.ReadFile("stderr")
	for _, form := range []string{string(seed), hex.EncodeToString(seed), base64.StdEncoding.EncodeToString(seed), base64.RawURLEncoding.EncodeToString(seed)} {
		if strings.Contains(printed, form) {
			ts.Fatalf("the private key of %s is printed:\n%s", args[0], printed)
		}
	}
}

// newest sets a variable to the last public key of a key list.
func newest(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		ts.Fatalf("usage: newest LIST VARIABLE")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	var list keyring.List
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &list))
	ts.Setenv(args[1], list.Keys[len(list.Keys)-1].PublicKey)
}
