package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unitSettings returns the settings of a systemd unit by their names.
func unitSettings(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			settings[name] = value
		}
	}
	return settings
}

// The unit of each service starts it with a command line and a file of settings that it accepts,
// and gives it the file as a credential. make systemd has systemd's own tool check the units;
// cmd/plumbline.TestUnitOfUp parses the command line of up.
func TestUnitsOfServices(t *testing.T) {
	for _, name := range []string{"ingest", "verifier", "drift", "exporter", "webhooks", "console"} {
		unit := unitSettings(t, "../deploy/systemd/plumbline-"+name+".service")
		if want := name + ".yaml:/etc/plumbline/" + name + ".yaml"; unit["LoadCredential"] != want {
			t.Errorf("%s: LoadCredential is %q, want %q", name, unit["LoadCredential"], want)
		}
		if unit["Restart"] != "on-failure" || unit["RestartPreventExitStatus"] != "2" || unit["StartLimitIntervalSec"] != "0" || unit["LimitNOFILE"] == "" || unit["ProtectSystem"] != "strict" {
			t.Errorf("%s: %v", name, unit)
		}
		if later := name == "drift" || name == "exporter"; (unit["CPUWeight"] == "10") != later {
			t.Errorf("%s: CPUWeight is %q", name, unit["CPUWeight"])
		}
		words := strings.Fields(strings.ReplaceAll(unit["ExecStart"], "%d", filepath.Join("..", "deploy", "systemd")))
		if len(words) == 0 || words[0] != "/usr/local/bin/"+name {
			t.Errorf("%s: ExecStart is %q", name, unit["ExecStart"])
			continue
		}
		output, err := exec.CommandContext(t.Context(), program(t, name), append(words[1:], "--print-config")...).CombinedOutput()
		login := "/etc/plumbline/" + name + ".creds"
		if name == "console" { // it needs no broker
			login = "clickhouse://reader"
		}
		if err != nil || !strings.Contains(string(output), login) {
			t.Errorf("%s: %s: %v\n%s", name, unit["ExecStart"], err, output)
		}
	}
}
