package docs

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedTest matches `directory.Test`, or `.Test`, which means the directory before it.
var namedTest = regexp.MustCompile("`([a-z0-9/]*)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")

// The tests that FAULTS.md, SCALING.md and NATS.md name exist. They are named by directory, or
// by package alone.
func TestFaultsNameTestsThatExist(t *testing.T) {
	for _, file := range []string{"FAULTS.md", "SCALING.md", "NATS.md"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		directory := ""
		for _, named := range namedTest.FindAllStringSubmatch(string(content), -1) {
			directory = cmp.Or(named[1], directory)
			in := func(parent string) bool { return exists(t, parent+directory, named[2]) }
			if !slices.ContainsFunc([]string{"", "*/", "*/*/"}, in) {
				t.Errorf("%s: there is no %s in %s", file, named[2], directory)
			}
		}
	}
}

// Every guarantee names a test, and the tests that GUARANTEES.md and TENANTS.md name exist.
func TestPromisesNameTestsThatExist(t *testing.T) {
	for _, file := range []string{"GUARANTEES.md", "TENANTS.md"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		directory := ""
		for _, place := range namedTest.FindAllStringSubmatchIndex(text, -1) {
			named, test := text[place[2]:place[3]], text[place[4]:place[5]]
			if named != "" {
				directory = named
			} else if heading := strings.LastIndex(text[:place[0]], "Test, in `"); heading >= 0 {
				directory, _, _ = strings.Cut(text[heading+len("Test, in `"):], "`")
			}
			if !exists(t, directory, test) {
				t.Errorf("%s: there is no %s in %s", file, test, directory)
			}
		}
	}
}

func TestEveryPromiseNamesATest(t *testing.T) {
	content, err := os.ReadFile("GUARANTEES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, promises, _ := strings.Cut(string(content), "## The promise\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	list := regexp.MustCompile(`(?m)^\d+\. `).Split(promises, -1)[1:]
	if len(list) < 7 {
		t.Errorf("there are %d promises", len(list))
	}
	for _, promise := range list {
		if !namedTest.MatchString(promise) {
			t.Errorf("no test is named: %s", promise)
		}
	}
}
