package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// On a terminal the words of verdicts and the beginning of an error have a color, unless NO_COLOR is set or the
// terminal is dumb.
func TestColors(t *testing.T) {
	path, file := program(t), filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shows := func(environment, text string, arguments ...string) {
		t.Helper()
		command := exec.Command(path, arguments...)
		command.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=", environment)
		x := openTerminal(t, command)
		x.expect(text)
		if err := command.Wait(); err == nil {
			t.Errorf("%q succeeded", arguments)
		}
	}
	verify, wrong := []string{"ledger", "verify", file}, []string{"bundle", "verify", "missing"}
	shows("", "\x1b[31mFAIL  \x1b[m", verify...)
	shows("NO_COLOR=1", "FAIL  "+file, verify...)
	shows("TERM=dumb", "FAIL  "+file, verify...)
	shows("", "\x1b[31mplumbline:\x1b[m ", wrong...)
	shows("NO_COLOR=1", "plumbline: nothing to read", wrong...)
}

// Where the output is no terminal there is no color and no control sequence.
func TestVerdictsWithoutTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var out bytes.Buffer
	const report = "PASS  a\nFAIL  b\nSKIP  NOT CHECKED: c\nINTACT: d\n"
	if n, err := (verdictWriter{&out}).Write([]byte(report)); n != len(report) || err != nil || out.String() != report {
		t.Errorf("%d bytes, %v: %q", n, err, &out)
	}
}

// Each word has its own color: what is intact only in part is not shown as intact.
func TestColorsOfVerdicts(t *testing.T) {
	for line, want := range map[string]color{
		"PASS  x": green, "INTACT: x": green, "OK: x": green, "PASS": green,
		"      FAIL  x": red, "NOT INTACT: x": red, "DIFFERS  x": red, "WEAK     x": red,
		"SKIP  NOT CHECKED: x": yellow, "SKIPPED  x": yellow, "INTACT, NOT SIGNED: x": yellow, "INTACT IN PART: x": yellow,
		"PASSED": "", "the FAIL  x": "", `{"result":"PASS"}`: "",
	} {
		got := color("")
		for _, v := range verdictWords {
			if v.words.MatchString(line) {
				got += v.color
			}
		}
		if got != want {
			t.Errorf("%q has the color %q, want %q", line, got, want)
		}
	}
}

// The first download of the engine shows how many bytes have come: in one line on a terminal.
func TestFetchingOnATerminal(t *testing.T) {
	dir := t.TempDir()
	const npm = "#!/bin/sh\nwhile [ \"$1\" != --cache ]; do shift; done\nmkdir -p \"$2/tmp\" && head -c 3500000 /dev/zero > \"$2/tmp/part\" && exec sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(npm), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program(t), "up", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	command.Env = append(os.Environ(), "TERM=xterm", "PLUMBLINE_ENGINE=", "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "PATH="+dir+":/usr/bin:/bin")
	x := openTerminal(t, command)
	x.expect("fetching the ClickHouse library")
	x.expect("\r\x1b[Kfetching the ClickHouse engine: 3 of 178 MB so far")
	x.writes("\x03")
	x.expect("\r\x1b[K\x1b[31mplumbline:\x1b[m ") // the line is erased
	if err := command.Wait(); err == nil {
		t.Error("up ended well without an engine")
	}
}

// Elsewhere it is a line every ten seconds.
func TestFetchingIntoAFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errs"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		con, began := &console{errs: file}, time.Now()
		end := con.fetching(178_000_000, func() int64 { return int64(time.Since(began).Seconds()) * 2_000_000 })
		time.Sleep(25 * time.Second)
		synctest.Wait()
		end()
	})
	text, err := os.ReadFile(file.Name())
	if want := "fetching the ClickHouse engine: 20 of 178 MB so far\nfetching the ClickHouse engine: 40 of 178 MB so far\n"; err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	if strings.Contains(string(text), "\x1b") {
		t.Error("a file has control sequences")
	}
}
