package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The tabulator key completes in shells that people use, on a terminal.
func TestShellsComplete(t *testing.T) {
	for name, shell := range map[string]struct {
		arguments []string
		source    string
	}{
		"bash": {[]string{"--norc", "--noprofile", "-i"}, "source <(plumbline completion bash)\r"},
		"zsh":  {[]string{"-f", "-i"}, "autoload -Uz compinit; compinit -D -u; source <(plumbline completion zsh)\r"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed: apt-get install %[1]s", name)
			}
			command := exec.Command(path, shell.arguments...)
			command.Dir = t.TempDir()
			command.Env = append(os.Environ(), "TERM=dumb", "PS1=> ", "HOME="+command.Dir, "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"))
			x := openTerminal(t, command)
			x.types(shell.source)
			x.types("plumbline bund\tver\t--require\t")
			x.expect("verify")
			x.expect("--require-signature")
			x.writes("\x15plumbline up --drift-mode=ro\t") // Ctrl-U: the line is empty again
			x.expect("--drift-mode=rolling")
			x.writes("\x15exit\r")
			if err := command.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
