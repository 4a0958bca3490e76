package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// bareInstall matches an installation of a package plumbline, by its name, from a registry.
var bareInstall = regexp.MustCompile(`(?:pip3? install|npm (?:install|i|add)|pnpm add|yarn add)(?: -\S+)* ['"]?plumbline\b`)

// In the registries of Python and of npm, the name plumbline belongs to others. So every text
// installs the clients from their directories.
func TestClientsAreInstalledFromTheirDirectories(t *testing.T) {
	for line, bare := range map[string]bool{
		"pip install plumbline":                true,
		"pip install -q 'plumbline[sign]'":     true,
		"npm install plumbline":                true,
		"npm i --save plumbline@1":             true,
		"pip install ./clients/python":         false,
		"pip install './clients/python[sign]'": false,
		"npm install ./clients/typescript":     false,
	} {
		if bareInstall.MatchString(line) != bare {
			t.Errorf("%s: matched %v, want %v", line, !bare, bare)
		}
	}
	files := 0
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md", "../clients/*/README.md", "../clients/python/plumbline/*.py", "../clients/typescript/src/*.ts", "../examples/*", "../examples/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			if command := bareInstall.Find(text); command != nil {
				t.Errorf("%s: %s installs a package of somebody else: install the directory of the client", name, command)
			}
		}
	}
	if files < 60 {
		t.Errorf("%d files found", files)
	}
}
