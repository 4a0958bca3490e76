package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// test is one test of a binary, with its duration.
type test struct {
	binary *binary
	name   string
	took   time.Duration
}

// noFailFile prevents rapid, in tests that use it, from writing a failing input of a mutant
// into the project.
const noFailFile = "-rapid.nofailfile"

// tests returns the tests of the binary.
func (b *binary) tests() ([]test, error) {
	command := exec.Command(b.path, "-test.list", "^(Test|Fuzz|Example)")
	command.Dir = b.dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", b.pkg, err)
	}
	if exec.Command(b.path, noFailFile, "-test.list", "^$").Run() == nil {
		b.flags = []string{noFailFile}
	}
	var all []test
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, test{binary: b, name: name})
		}
	}
	return all, nil
}

// run runs tests of one binary with additional environment variables, up to the first failure,
// and reports whether all passed.
func run(tests []*test, limit time.Duration, variables ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	b := tests[0].binary
	command := exec.CommandContext(ctx, b.path, append([]string{"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.short=false", "-test.failfast"}, b.flags...)...)
	command.Dir = b.dir
	command.Env = append(os.Environ(), variables...)
	command.WaitDelay = time.Second
	return command.Run() == nil
}

// reach runs each test once, without a mutant, and returns the tests that reach each
// mutant, the quickest first.
func reach(all []test, dir string, mutants, workers int) (reached [][]*test) {
	reached = make([][]*test, mutants)
	var mu sync.Mutex
	each(len(all), workers, func(i int) {
		t := &all[i]
		file := filepath.Join(dir, fmt.Sprintf("reached-%d", i))
		began := time.Now()
		passed := run([]*test{t}, 20*time.Minute, variableReached+"="+file)
		t.took = time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		if !passed {
			fmt.Printf("LEFT OUT %s.%s: it fails without any mutant, as a test that counts allocations does\n", t.binary.pkg, t.name)
			return
		}
		text, _ := os.ReadFile(file) // a test that reaches no mutant creates no file
		for _, number := range strings.Fields(string(text)) {
			if n, atoi := strconv.Atoi(number); atoi == nil && n < mutants {
				if !slices.Contains(reached[n], t) {
					reached[n] = append(reached[n], t)
				}
			}
		}
	})
	for _, tests := range reached {
		slices.SortFunc(tests, func(a, b *test) int { return int(a.took - b.took) })
	}
	return reached
}

// quick removes the tests that are too slow.
func (s *settings) quick(tests []*test) []*test {
	if s.slowest == 0 {
		return tests
	}
	return slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return t.took > s.slowest })
}

// noticed reports whether a test that reaches a mutant fails with it. Quick tests of one
// binary run in one process, because starting a process takes longer than they do.
func noticed(n int, tests []*test) bool {
	for len(tests) > 0 {
		count, took := 0, time.Duration(0)
		for count < len(tests) && tests[count].binary == tests[0].binary && (count == 0 || took < time.Second) {
			took += tests[count].took
			count++
		}
		if !run(tests[:count], 10*took+5*time.Second, fmt.Sprintf("%s=%d", variableOn, n)) {
			return true
		}
		tests = tests[count:]
	}
	return false
}

// each calls f for every number below n, workers calls at a time.
func each(n, workers int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range n {
		group.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = group.Wait() // f returns no error
}
