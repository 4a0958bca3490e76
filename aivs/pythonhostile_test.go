package aivs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// becomes replaces a file by something else.
func becomes(file string, place func(path string) error) func(string) error {
	return func(directory string) error {
		path := filepath.Join(directory, file)
		if err := os.Remove(path); err != nil {
			return err
		}
		return place(path)
	}
}

func holds(file, text string) func(string) error {
	return becomes(file, func(path string) error { return os.WriteFile(path, []byte(text), 0o600) })
}

// manifestSays writes a manifest with another action_count.
func manifestSays(count string) func(string) error {
	return swap(manifestFile, `"action_count": 5`, `"action_count": `+count)
}

// Whatever the directory contains, verify.py prints FAIL and exits 1. It neither crashes nor
// hangs.
func TestPythonNeverCrashes(t *testing.T) {
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	loop := func(path string) error { return os.Symlink(path, path) }
	endless := func(path string) error { return os.Symlink("/dev/zero", path) }
	deep := strings.Repeat("[", 100_000)
	nested := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	huge := strings.Repeat("9", 100_000)
	cases := map[string]struct {
		spoil func(directory string) error
		want  string
	}{
		"log is a pipe":            {becomes(logFile, pipe), "audit_log.jsonl: not a plain file"},
		"log is a folder":          {becomes(logFile, folder), "audit_log.jsonl: not a plain file"},
		"log is endless":           {becomes(logFile, endless), "audit_log.jsonl: not a plain file"},
		"log is a loop":            {becomes(logFile, loop), ""},
		"manifest is a pipe":       {becomes(manifestFile, pipe), "manifest.json: not a plain file"},
		"manifest is a folder":     {becomes(manifestFile, folder), "manifest.json: not a plain file"},
		"signature is a pipe":      {becomes(signatureName, pipe), "session_sig.txt: not a plain file"},
		"key is a pipe":            {becomes(keyFile, pipe), "public_key.pem: not a plain file"},
		"attestation is a pipe":    {becomes(attestationFile, pipe), "attestation.dsse.json: not a plain file"},
		"member is a pipe":         {becomes(VerdictsMember, pipe), "verdicts.jsonl: not a plain file"},
		"member is a folder":       {becomes(VerdictsMember, folder), "verdicts.jsonl: not a plain file"},
		"stray pipe":               {func(d string) error { return pipe(filepath.Join(d, "x")) }, "x: not a plain file"},
		"log is no text":           {holds(logFile, "\xff\xfe\n"), "row 1"},
		"log is deep":              {holds(logFile, deep+"\n"), "row 1: not strict JSON"},
		"log has a huge number":    {holds(logFile, `{"id": `+huge+`}`), "row 1"},
		"log has no number":        {holds(logFile, `{"id": NaN}`), "row 1: not strict JSON"},
		"id is huge":               {swap(logFile, `{"id": 1,`, `{"id": `+huge+`,`), "row 1"},
		"cost is huge":             {swap(logFile, `"cost_cents": 0`, `"cost_cents": `+huge), "row 1"},
		"time is beyond floats":    {swap(logFile, `"timestamp": 1`, `"timestamp": 1e999, "x": 1`), "row 1"},
		"half a character":         {swap(logFile, `\u00e9`, `\ud800`), "row 2"},
		"manifest is deep":         {holds(manifestFile, deep), "manifest.json: not strict JSON"},
		"count is deep":            {manifestSays(nested), "manifest.json"},
		"count is huge":            {manifestSays(huge), "manifest.json"},
		"count is a map":           {manifestSays(`{"a": null}`), "manifest.json: action_count"},
		"manifest is a list":       {holds(manifestFile, "[]"), "manifest.json: not a JSON object"},
		"manifest is empty":        {holds(manifestFile, ""), "manifest.json: not strict JSON"},
		"key is binary":            {holds(keyFile, "\x00\xff"), "public_key.pem"},
		"key is long":              {holds(keyFile, "# Ed25519 public key: "+huge), "public_key.pem: not an Ed25519"},
		"key is off the curve":     {holds(keyFile, "# Ed25519 public key: "+strings.Repeat("02", 32)), "session_sig.txt: the signature is wrong"},
		"signature is long":        {swap(signatureName, "signature:", "signature:"+huge), "session_sig.txt"},
		"signature in other signs": {swap(signatureName, "signature:", "signature:é"), "session_sig.txt"},
		"attestation is deep":      {holds(attestationFile, deep), "attestation.dsse.json: not strict JSON"},
		"attestation of lists":     {holds(attestationFile, `{"payload": "", "payloadType": "application/vnd.in-toto+json", "signatures": [[], 1, null, {"sig": []}]}`), "attestation.dsse.json: no signature in it"},
	}
	root, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	content := aivstest.Gunzip(t, build(t, sampleInput(3), testKey("k")).Bytes)
	for _, name := range names {
		unpackInto(t, filepath.Join(root, name), content)
		if err := cases[name].spoil(filepath.Join(root, name, "session_proof")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i, line := range judgeAll(t, root, len(names)) {
		if want := cases[names[i]].want; !strings.HasPrefix(line, "1 ") || !strings.Contains(line, "FAIL  "+want) {
			t.Errorf("%s: %.500s", names[i], line)
		}
	}
}

func TestPythonRefusesBadArguments(t *testing.T) {
	good := unpack(t, build(t, sampleInput(1), testKey("k")).Bytes)
	for _, arguments := range [][]string{
		{good, "--key"}, {good, "--key", "xy"}, {good, "--key", "é"}, {good, "--what"}, {good, good}, {filepath.Join(good, "gone")},
		{filepath.Join(good, logFile)}, {strings.Repeat("x", 5000)}, {""},
		{good, "--key", strings.Repeat("00", 32), "--key", strings.Repeat("00", 32)},
	} {
		if passed, output := python(t, arguments[0], arguments[1:]...); passed || !strings.Contains(output, "FAIL  ") {
			t.Errorf("%.100q: %s", arguments, output)
		}
	}
}
