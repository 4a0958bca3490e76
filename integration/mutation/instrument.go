package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// The environment variables that the instrumented package reads. variableOn contains the number
// of the mutant that is switched on; variableReached the file to which the numbers of the
// reached mutants are appended.
const (
	variableOn      = "MUTANT_ON"
	variableReached = "MUTANT_REACHED"
)

const support = `package %s

import (
	"cmp"
	"os"
	"strconv"
	"sync"
)

var mutantNumber, mutantFile, mutantSeen = func() (int, *os.File, *sync.Map) {
	n, err := strconv.Atoi(os.Getenv("MUTANT_ON"))
	if err != nil {
		n = -1
	}
	var file *os.File
	if name := os.Getenv("MUTANT_REACHED"); name != "" {
		if file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			panic(err)
		}
	}
	return n, file, new(sync.Map)
}()

func mutantOn(n int) bool {
	if mutantFile != nil {
		if _, seen := mutantSeen.LoadOrStore(n, true); !seen {
			if _, err := mutantFile.WriteString(strconv.Itoa(n) + "\n"); err != nil {
				panic(err)
			}
		}
	}
	return n == mutantNumber
}

func mutantLess[T cmp.Ordered](n int, x, y T) bool    { return x < y || mutantOn(n) && x == y }
func mutantAtMost[T cmp.Ordered](n int, x, y T) bool  { on := mutantOn(n); return x < y || !on && x == y }
func mutantMore[T cmp.Ordered](n int, x, y T) bool    { return x > y || mutantOn(n) && x == y }
func mutantAtLeast[T cmp.Ordered](n int, x, y T) bool { on := mutantOn(n); return x > y || !on && x == y }

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func mutantSum[T mutantInteger](n int, x, y T) T {
	if mutantOn(n) {
		return x - y
	}
	return x + y
}

func mutantDifference[T mutantInteger](n int, x, y T) T {
	if mutantOn(n) {
		return x + y
	}
	return x - y
}

var _, _, _, _ = mutantLess[int], mutantAtMost[int], mutantMore[int], mutantAtLeast[int]
var _, _ = mutantSum[int], mutantDifference[int]
`

// instrument writes the package with all mutants, switched off, into a directory, and
// an overlay that replaces the package with it.
func instrument(pkg *packages.Package, root, dir string) (mutants []mutant, overlay string, err error) {
	replace := map[string]string{}
	put := func(path string, text []byte) error {
		into := filepath.Join(dir, filepath.Base(path))
		replace[path] = into
		return os.WriteFile(into, text, 0o600)
	}
	for i, file := range pkg.Syntax {
		path := pkg.CompiledGoFiles[i]
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		within, err := filepath.Rel(root, path)
		if err != nil {
			return nil, "", err
		}
		f := finder{pkg: pkg, file: within, source: source, first: len(mutants)}
		f.find(file)
		mutants = append(mutants, f.mutants...)
		if err := put(path, f.rewritten()); err != nil {
			return nil, "", err
		}
	}
	here := filepath.Dir(pkg.CompiledGoFiles[0])
	if err := put(filepath.Join(here, "mutant_support.go"), fmt.Appendf(nil, support, pkg.Name)); err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return mutants, overlay, os.WriteFile(overlay, text, 0o600)
}

// binary is a test binary, and the directory in which its tests run.
type binary struct {
	path, dir, pkg string
	flags          []string // for each run
}

// build compiles the tests of a package with the overlay.
func build(overlay, importPath, sourceDir, into string) (binary, error) {
	b := binary{path: filepath.Join(into, strings.ReplaceAll(importPath, "/", "_")+".test"), dir: sourceDir, pkg: importPath}
	command := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, importPath)
	if out, err := command.CombinedOutput(); err != nil {
		return b, fmt.Errorf("compile the tests of %s: %w\n%s", importPath, err, out)
	}
	return b, nil
}
