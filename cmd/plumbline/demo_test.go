package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/cmd/plumbline/demo"
)

func TestDemoFailsOnAnyDifference(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		for _, c := range []struct {
			faults []string
			code   int
		}{{nil, exitGood}, {[]string{"CARD_EXPIRED: planted, but not found: tr-1"}, exitBad}} {
			var out bytes.Buffer
			command := demoCommand{JSON: asJSON}
			err := command.report(&console{out: &out, errs: os.Stderr}, &demo.Result{Faults: c.faults})
			if code := exitCode(err); code != c.code {
				t.Errorf("with faults %q and JSON %v the exit code is %d, want %d", c.faults, asJSON, code, c.code)
			}
			if printed := strings.Contains(out.String(), "WRONG: CARD_EXPIRED"); printed != (c.code == exitBad && !asJSON) {
				t.Errorf("with faults %q and JSON %v it prints\n%s", c.faults, asJSON, &out)
			}
			if asJSON && strings.Count(out.String(), "\n") != 1 {
				t.Errorf("not one object:\n%s", &out)
			}
		}
	}
}
