package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testCommand matches a go test of some packages by name, in a Makefile or a document.
var testCommand = regexp.MustCompile("(?:go|\\$\\(GO\\)) test [^\n`]*-run [^\n`]*")

// makeVariable matches a variable of the Makefile in one line.
var makeVariable = regexp.MustCompile(`(?m)^(\w+) := (.*)$`)

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// go test succeeds where no test has the name. So every name in the Makefile and in a document is
// the name of a test in each of the packages that the command names.
func TestCommandsNameTestsThatExist(t *testing.T) {
	files := []string{"../Makefile"}
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	commands := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, variable := range makeVariable.FindAllStringSubmatch(string(text), -1) { // a list of names, as make joins it
			names := strings.Join(strings.Fields(variable[2]), "|")
			text = []byte(strings.ReplaceAll(string(text), "$(subst $(space),|,$("+variable[1]+"))", names))
		}
		for _, command := range testCommand.FindAllString(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			words := strings.Fields(strings.ReplaceAll(command, "$$", "$"))
			for i, word := range words {
				if word != "-run" || i+1 == len(words) {
					continue
				}
				whole, _, _ := strings.Cut(strings.Trim(words[i+1], "'\""), "/")
				if list, ok := strings.CutPrefix(whole, "^("); ok {
					whole = strings.TrimSuffix(list, ")$")
				}
				if whole == "^$" || whole == "xxx" {
					continue // only benchmarks
				}
				commands++
				for _, directory := range directories(words) {
					for name := range strings.SplitSeq(whole, "|") {
						if !runs(t, directory, name) {
							t.Errorf("%s: %s: no test of %s matches %s", file, command, directory, name)
						}
					}
				}
			}
		}
	}
	if commands < 12 {
		t.Errorf("%d commands found", commands)
	}
}

// directories returns the packages that a command names, but not patterns of several.
func directories(words []string) (found []string) {
	for _, word := range words {
		if strings.HasPrefix(word, "./") && !strings.Contains(word, "...") {
			found = append(found, word)
		}
	}
	return found
}

// runs reports whether a directory has a test that an expression matches.
func runs(t *testing.T, directory, expression string) bool {
	t.Helper()
	match, err := regexp.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range testFunction.FindAllStringSubmatch(testsOf(t, directory), -1) {
		if match.MatchString(function[1]) {
			return true
		}
	}
	return false
}
