package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is one snippet of a document: a file to write, or a command with its output.
type step struct {
	file, text      string
	command, output string
}

// fence matches a fenced block: its language, what follows it, and the text.
var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")

// steps returns the snippets of a document in order.
func steps(t *testing.T, document string) (found []step) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		if block[1] != "console" {
			found = append(found, step{file: block[2], text: block[3]})
			continue
		}
		for _, part := range strings.Split("\n"+block[3], "\n$ ")[1:] {
			lines, n := strings.Split(strings.TrimSuffix(part, "\n"), "\n"), 0
			for strings.HasSuffix(lines[n], `\`) {
				n++
			}
			found = append(found, step{command: strings.Join(lines[:n+1], "\n"), output: strings.Join(lines[n+1:], "\n")})
		}
	}
	return found
}

// agrees reports whether an output is that of the document, where … stands for any text, a
// line of … for any lines, and addresses may have other ports.
func agrees(got, want string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	for _, port := range []string{"8080", "8081"} { // the documents have the default ports
		pattern = strings.ReplaceAll(pattern, "127\\.0\\.0\\.1:"+port, `127\.0\.0\.1:\d+`)
	}
	pattern = regexp.MustCompile(`(?m)^…\n?`).ReplaceAllString(pattern, "(?s:.*)")
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	trimmed := regexp.MustCompile(`(?m) +$`).ReplaceAllString(strings.TrimSpace(got), "")
	return regexp.MustCompile("^" + pattern + "$").MatchString(trimmed)
}

// reads reports whether a command only reads, so that it can be repeated until the pipeline has
// processed what was published.
func reads(command string) bool {
	return slices.ContainsFunc([]string{"plumbline sql ", "plumbline trace get ", "plumbline bundle verify "}, func(prefix string) bool {
		return strings.HasPrefix(command, prefix)
	})
}

// run runs a command of the document and compares its output.
func (v *visitor) run(t *testing.T, s step) {
	t.Helper()
	if query, is := strings.CutPrefix(s.command, "plumbline sql "); is { // the document shows what a terminal shows
		s.command = "plumbline sql --format table " + query
	}
	if reads(s.command) {
		v.await(t, s.command, func(out []byte) bool { return agrees(string(out), s.output) }, "want\n"+s.output)
		return
	}
	if out, err := v.shell(t.Context(), s.command).CombinedOutput(); err != nil || !agrees(string(out), s.output) {
		t.Fatalf("%s\nprints (%v)\n%s\nwant\n%s", s.command, err, out, s.output)
	}
}
