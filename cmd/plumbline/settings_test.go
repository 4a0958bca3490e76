package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// flagsOfUp returns the flags of plumbline up by YAML key.
func flagsOfUp(t *testing.T) map[string]*kong.Flag {
	t.Helper()
	flags := map[string]*kong.Flag{}
	for _, node := range newParser().Model.Children {
		if node.Name != upName {
			continue
		}
		for _, flag := range node.Flags {
			flags[strings.ReplaceAll(flag.Name, "-", "_")] = flag
		}
	}
	if len(flags) < 30 {
		t.Fatalf("up has %d flags", len(flags))
	}
	return flags
}

// A setting has one name (docs/CONFIG.md): a flag of up is called as the service's setting, or has the
// service's name before that; and its variable is called as the flag.
func TestSettingsHaveOneName(t *testing.T) {
	ofUp := []string{"config", "print_config", "json", "memory", "nats_port", "clickhouse_port", "clickhouse_http_port"}
	stages := stageKeys()
	for key, flag := range flagsOfUp(t) {
		if want := "PLUMBLINE_" + strings.ToUpper(key); flag.Envs[0] != want {
			t.Errorf("the variable of --%s is %s, want %s", flag.Name, flag.Envs[0], want)
		}
		var services []string
		for name, keys := range stages {
			if slices.Contains(keys, key) || slices.Contains(keys, strings.TrimPrefix(key, name+"_")) {
				services = append(services, name)
			}
			if rest, prefixed := strings.CutPrefix(key, name+"_"); prefixed && slices.Contains(keys, key) && slices.Contains(keys, rest) {
				t.Errorf("%s: %s of %s could mean %s and %s", name, flag.Name, upName, key, rest)
			}
		}
		if alone := slices.Contains(ofUp, key); (services == nil) != alone {
			t.Errorf("--%s of up: settings of that name are those of %v; a setting of up alone: %t", flag.Name, services, alone)
		}
	}
}

// An error names the setting that is wrong, and others, as docs/CONFIG.md spells them.
func TestErrorsNameSettings(t *testing.T) {
	known := map[string]bool{"stages": true} // of machine.Config, not of a user
	for key := range flagsOfUp(t) {
		known[key] = true
	}
	for _, keys := range stageKeys() {
		for _, key := range keys {
			known[key] = true
		}
	}
	checks, mentioned := 0, regexp.MustCompile(`\b[a-z0-9]+(_[a-z0-9]+)+\b`)
	for _, root := range []string{"../../pipeline", "../../machine"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				key, texts := checkOfSetting(node)
				if key == "" {
					return true
				}
				if checks++; !known[key] {
					t.Errorf("%s: an error names the setting %q, which no program has", path, key)
				}
				for _, text := range texts {
					for _, name := range mentioned.FindAllString(text, -1) {
						if !known[name] {
							t.Errorf("%s: the error of %s mentions %q, which is no setting", path, key, name)
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checks < 60 {
		t.Errorf("%d checks of settings found", checks)
	}
}

// checkOfSetting returns the key and the texts of a call faults.Check(…, "key", "text", …) or of one of the functions
// beside it.
func checkOfSetting(node ast.Node) (key string, texts []string) {
	call, is := node.(*ast.CallExpr)
	if !is {
		return "", nil
	}
	name := ""
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = function.Sel.Name
	case *ast.Ident:
		name = function.Name
	}
	if !slices.Contains([]string{"Check", "check", "CheckAddress", "CheckFile", "CheckThreshold", "ScheduleFaults"}, name) {
		return "", nil
	}
	for _, argument := range call.Args {
		if literal, is := argument.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 || strings.Trim(texts[0], "abcdefghijklmnopqrstuvwxyz0123456789_") != "" { // of a record: /mark
		return "", nil
	}
	return texts[0], texts[1:]
}
