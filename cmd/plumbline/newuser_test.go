package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/machine"
)

// A new user follows QUICKSTART.md, and then publishes the session of the examples in every
// language, on one machine.
func TestNewUser(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts a machine")
	}
	visitor := newVisitor(t)
	all := steps(t, "../../docs/QUICKSTART.md")
	var before []string
	for len(all) > 0 && all[0].command != "plumbline up" {
		before, all = append(before, all[0].command), all[1:]
	}
	// The test has the tool already.
	if want := []string{"git clone https://github.com/plumbline/plumbline", "cd plumbline", "make build", `export PATH="$PWD/bin:$PATH"`}; !slices.Equal(before, want) {
		t.Errorf("the commands before plumbline up are %q, want %q", before, want)
	}
	if len(all) < 10 {
		t.Fatalf("%d steps", len(all))
	}
	visitor.up(t, "", all[0].output)
	if !t.Run("Quickstart", func(t *testing.T) {
		for _, s := range all[1:] {
			if s.file != "" {
				visitor.write(t, s.file, s.text)
			} else {
				visitor.run(t, s)
			}
		}
	}) {
		return
	}
	t.Run("README", visitor.followREADME)
	t.Run("Examples", visitor.publishExamples)
	t.Run("MCP", visitor.recordMCP)
}

// followREADME runs the commands of README's "In short" that come after plumbline up.
func (v *visitor) followREADME(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, short, found := strings.Cut(string(text), "In short:\n\n")
	short, _, _ = strings.Cut(short, "\n\n")
	_, short, up := strings.Cut(short, "    plumbline up ")
	lines := strings.Split(strings.ReplaceAll(short, "\n    ", "\n"), "\n")[1:] // without the rest of the line of up
	if !found || !up || len(lines) != 2 {
		t.Fatalf("README.md lacks the commands: %q", lines)
	}
	v.run(t, step{command: lines[0], output: "5 sent: 5 accepted, 0 duplicates, 0 refused\n…"})
	v.run(t, step{command: lines[1], output: "…trace_id…\n…tr-1018-5 …MISSED_ESCALATION …\n…"})
}

// visitor is a new user with a shell in a directory that looks like a clone.
type visitor struct {
	dir string
	env []string

	at        *machine.Endpoints // of its plumbline up
	out, errs bytes.Buffer       // what that prints; complete when it has ended
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	v := &visitor{dir: t.TempDir()}
	if err := makeTool(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples", "clients"} {
		target, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	v.env = append(os.Environ(), "PATH="+toolDir+string(os.PathListSeparator)+os.Getenv("PATH"), "PLUMBLINE_SPOOL="+filepath.Join(v.dir, "spool"), "XDG_STATE_HOME="+filepath.Join(v.dir, "state"), "PYTHONDONTWRITEBYTECODE=1")
	return v
}

func (v *visitor) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// up starts plumbline up on a free port and stops it with the test. It must print what is wanted.
func (v *visitor) up(t *testing.T, flags, want string) {
	t.Helper()
	cmd := v.shell(t.Context(), "exec plumbline up --listen 127.0.0.1:0 "+flags)
	cmd.Stdout, cmd.Stderr = &v.out, &v.errs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's context has ended
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != exitGood {
			t.Errorf("plumbline up: %v\n%s", err, &v.errs)
		}
		if !agrees(v.out.String(), want) {
			t.Errorf("plumbline up prints\n%s\nwant\n%s", &v.out, want)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), awaitFor)
	defer cancel()
	err := machine.Poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		at, err := machine.Find(ctx, filepath.Join(v.dir, "plumbline-data"))
		if err == nil {
			v.at, v.env = at, append(v.env, "PLUMBLINE_URL="+at.IngestURL) // the documents have the default port
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("plumbline up: %v", err) // its output follows when it has ended
	}
}

// await repeats a command until its output is the one wanted, and returns it.
func (v *visitor) await(t *testing.T, command string, wanted func([]byte) bool, want string) []byte {
	t.Helper()
	deadline := time.Now().Add(awaitFor)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 320*time.Millisecond) { // a command takes CPU time from what it waits for
		out, err := v.shell(t.Context(), command).CombinedOutput()
		if err == nil && wanted(out) {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\nprints (%v)\n%s\n%s", command, err, out, want)
		}
		time.Sleep(pause)
	}
}

// shell returns a command line in the visitor's shell.
func (v *visitor) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = v.dir, v.env
	return cmd
}
