package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every service has examples in its help text. Each is a command line that the service accepts, with the file
// of docs/CONFIG.md, which plumbline up accepts, too.
func TestExamplesOfServices(t *testing.T) {
	text, err := os.ReadFile("../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if file == nil {
		t.Fatal("docs/CONFIG.md has no file of settings")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plumbline.yaml"), file[1], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(program(t, "ingest"))+":/usr/bin:/bin")
	shell := func(line string) string {
		command := exec.CommandContext(t.Context(), "sh", "-c", line)
		command.Dir = dir
		output, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
		return string(output)
	}
	for _, name := range []string{"ingest", "verifier", "drift", "exporter", "webhooks", "console"} {
		_, below, _ := strings.Cut(shell(name+" --help"), "Examples:\n\n")
		examples, _, _ := strings.Cut(below, "\n\n")
		lines := strings.Split(strings.TrimSpace(examples), "\n")
		if len(lines) < 2 {
			t.Errorf("%s --help has the examples %q", name, lines)
		}
		for _, line := range lines {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, name+" ") {
				t.Errorf("%s --help has the example %q", name, line)
			}
			shell(line + " --print-config")
		}
	}
	shell("plumbline up --config plumbline.yaml --print-config")
}
