package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type testConfig struct {
	Common
	Listen     string        `help:"Address to listen on."`
	BatchAge   time.Duration `help:"Longest wait."`
	Agents     []string      `help:"Agents."`
	Times      []string      `sep:";" placeholder:"CRON" help:"Times."`
	APIKey     string        `name:"api-key" help:"A secret." secret:""`
	ClickHouse ClickHouse    `embed:"" prefix:"clickhouse-"`
}

func (c *testConfig) Validate() []Fault {
	faults := Faults(c.Common.Validate())
	faults.CheckAddress("listen", c.Listen)
	return append(faults, c.ClickHouse.Validate()...)
}

func testDefaults() *testConfig {
	return &testConfig{
		Common:     DefaultCommon("127.0.0.1:9101"),
		Listen:     "127.0.0.1:8080",
		BatchAge:   time.Second,
		Agents:     []string{"a"},
		ClickHouse: DefaultClickHouse(),
	}
}

var testCommand = Command{Name: "tester", Summary: "Test.", Version: "1.2.3"}

func loadWith(t *testing.T, yaml string, args ...string) (*testConfig, string, error) {
	t.Helper()
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	cfg := testDefaults()
	var out bytes.Buffer
	err := Load(testCommand, cfg, args, &out)
	return cfg, out.String(), err
}

func TestPrecedence(t *testing.T) {
	t.Setenv("PLUMBLINE_LISTEN", "127.0.0.1:2")
	t.Setenv("PLUMBLINE_TENANT", "env")
	cfg, _, err := loadWith(t, "listen: 127.0.0.1:1\ntenant: file\nlog_level: debug\nbatch_age: 5ms\n", "--listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != "127.0.0.1:3" {
		t.Errorf("listen %s, want the flag's", cfg.Listen)
	}
	if cfg.Tenant != "env" {
		t.Errorf("tenant %s, want the environment's", cfg.Tenant)
	}
	if cfg.LogLevel != "debug" || cfg.BatchAge != 5*time.Millisecond {
		t.Errorf("log level %s, batch age %s, want the file's", cfg.LogLevel, cfg.BatchAge)
	}
	if cfg.LogFormat != "json" || cfg.DrainBudget != 30*time.Second || len(cfg.Agents) != 1 {
		t.Errorf("defaults are lost: %+v", cfg)
	}
}

func TestConfigFileFromEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("tenant: file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLUMBLINE_CONFIG", path)
	cfg, _, err := loadWith(t, "")
	if err != nil || cfg.Tenant != "file" {
		t.Errorf("tenant %q, %v; want file", cfg.Tenant, err)
	}
}

func TestFileGroupsAndLists(t *testing.T) {
	cfg, _, err := loadWith(t, "nats:\n  url: nats://a:1\n  allow_unsafe: true\nagents: [x, 'y,z']\ntimes: ['1,2 *', 'a;b']\nlog_level:\n")
	if err == nil {
		t.Fatal("an empty log level was accepted")
	}
	if cfg.NATS.URL != "nats://a:1" || !cfg.NATS.AllowUnsafe {
		t.Errorf("group: %+v", cfg.NATS)
	}
	if strings.Join(cfg.Agents, "|") != "x|y,z" {
		t.Errorf("list: %q", cfg.Agents)
	}
	if strings.Join(cfg.Times, "|") != "1,2 *|a;b" {
		t.Errorf("list with another separator: %q", cfg.Times)
	}
}

func TestRefusedFiles(t *testing.T) {
	cases := map[string]struct {
		yaml  string
		wants []string
	}{
		"unknown keys, all of them": {"lisen: x\n\nno_such_thing: 1\n", []string{"c.yaml:1: lisen: unknown key, did you mean listen?", "c.yaml:3: no_such_thing: unknown key"}},
		"in a group":                {"nats:\n  ulr: x\n", []string{"c.yaml:2: nats_ulr: unknown key, did you mean nats_url?"}},
		"twice":                     {"nats_url: nats://a\nnats: {url: nats://b}\n", []string{"c.yaml:2: nats_url: already set on line 1"}},
		"wrong type":                {"batch_age: soon\n", []string{"c.yaml:1: batch_age:", "duration"}},
		"section without keys":      {"exporter: 5\n", []string{"c.yaml:1: want key: value"}},
		"not a mapping":             {"- a\n", []string{"c.yaml:1: want key: value"}},
		"a list for one value":      {"listen: [a, b]\n", []string{"c.yaml:1: listen: want one value, found a list"}},
		"list of lists":             {"agents: [[a]]\n", []string{"c.yaml:1: agents: want a list of plain values"}},
		"two documents":             {"tenant: a\n---\ntenant: b\n", []string{"more than one document"}},
		"not YAML":                  {"\t:", []string{"c.yaml"}},
		"options are not settings":  {"config: x\nprint_config: true\n", []string{"config: unknown key", "print_config: unknown key"}},
	}
	for name, c := range cases {
		_, _, err := loadWith(t, c.yaml)
		if !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v, want ErrUsage", name, err)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", name, err, want)
			}
		}
	}
}

// Where every line of a file, of a section or of a group is commented out, nothing is set.
func TestEmptyFileIsNoSettings(t *testing.T) {
	for _, text := range []string{"# nothing yet\n", "---\n", "{}\n", "verifier:\n  # seal_idle: 1h\nexporter: {}\nnats:\n  # url: nats://h\nclickhouse: ~\n"} {
		if cfg, _, err := loadWith(t, text); err != nil || cfg.NATS.URL != testDefaults().NATS.URL {
			t.Errorf("%q: %v, %s", text, err, cfg.NATS.URL)
		}
	}
}

func TestMisspeltVariable(t *testing.T) {
	t.Setenv("PLUMBLINE_LISTNE", "x")
	t.Setenv("PLUMBLINE_VERIFIER_SERVICE_HOST", "10.0.0.1") // a variable that Kubernetes sets
	_, _, err := loadWith(t, "")
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "PLUMBLINE_LISTNE: unknown variable, did you mean PLUMBLINE_LISTEN?") {
		t.Errorf("%v, want ErrUsage with a suggestion", err)
	}
	if err != nil && strings.Contains(err.Error(), "SERVICE_HOST") {
		t.Errorf("a variable of the platform is refused: %v", err)
	}
}

func TestUnknownFlag(t *testing.T) {
	_, _, err := loadWith(t, "", "--lisen=x")
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("%v, want ErrUsage suggesting --listen", err)
	}
}

func TestAllFaultsAreReported(t *testing.T) {
	_, _, err := loadWith(t, "tenant: a b\nlisten: nowhere\ndrain_budget: 0s\nlog_format: xml\nclickhouse: {dsn: here}\nnats: {url: 'nats://u:s3cret@', cert_file: x, replicas: 7, user: u, token: t, inbox_prefix: 'a.>'}\n")
	if !errors.Is(err, ErrUsage) {
		t.Fatalf("%v, want ErrUsage", err)
	}
	for _, key := range []string{"tenant", "listen", "drain_budget", "log_format", "clickhouse_dsn", "nats_url", "nats_cert_file", "nats_replicas", "nats_credentials_file", "nats_inbox_prefix"} {
		if !strings.Contains(err.Error(), "\n  "+key+": ") {
			t.Errorf("no fault of %s in %v", key, err)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an error contains a password: %v", err)
	}
}

func TestPrintConfigHidesSecretsAndReadsBack(t *testing.T) {
	_, out, err := loadWith(t, "api_key: s3cret\ntimes: ['1,2 *', 3 *]\nnats_url: nats://u:s3cret@a:1,nats://s3cret@b:2\nclickhouse_dsn: clickhouse://u@h:9000/p?password=s3cret\n", "--print-config")
	if !errors.Is(err, ErrDone) {
		t.Fatalf("%v, want ErrDone", err)
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("a secret is printed:\n%s", out)
	}
	for _, want := range []string{`tenant: "default"`, "drain_budget: 30s", "nats_allow_unsafe: false", `api_key: "********"`, `nats_credentials_file: ""`, `agents: "a"`} {
		if !strings.Contains(out, want+"  # ") {
			t.Errorf("no line %s in\n%s", want, out)
		}
	}
	again, _, err := loadWith(t, out)
	if err != nil {
		t.Fatalf("what was printed does not load: %v", err)
	}
	if again.DrainBudget != 30*time.Second || again.Tenant != "default" || strings.Join(again.Times, "|") != "1,2 *|3 *" {
		t.Errorf("read back as %+v", again)
	}
}

// One file configures several services: the top is for all of them, and a section overrides it.
func TestSectionsOfAFile(t *testing.T) {
	const file = "verifier: {listen: 127.0.0.1:2, nats: {url: 'nats://v:1'}}\ntenant: top\nclickhouse_cluster: c1\ncard_cache_bytes: 5\nlisten: 127.0.0.1:1\n" +
		"exporter:\n  seal_idle: 1h\n  tenant: other\n"
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(name string) (*testConfig, error) {
		cfg := testDefaults()
		return cfg, Load(Command{Name: name}, cfg, []string{"--config", path}, new(bytes.Buffer))
	}
	if cfg, err := load("verifier"); err != nil || cfg.Listen != "127.0.0.1:2" || cfg.NATS.URL != "nats://v:1" || cfg.Tenant != "top" {
		t.Errorf("verifier: %+v, %v", cfg, err)
	}
	if cfg, err := load("drift"); err != nil || cfg.Listen != "127.0.0.1:1" || cfg.Tenant != "top" {
		t.Errorf("drift has no section: %+v, %v", cfg, err)
	}
	_, err := load("exporter")
	if err == nil || !strings.Contains(err.Error(), "all.yaml:7: seal_idle: unknown key: --print-config lists them") {
		t.Errorf("a key that this service does not have, in its section: %v", err)
	}
}

// Each setting is printed with the place that it is from.
func TestPrintConfigNamesOrigins(t *testing.T) {
	t.Setenv("PLUMBLINE_TENANT", "env")
	t.Setenv("PLUMBLINE_LOG_LEVEL", "debug")
	_, out, err := loadWith(t, "tenant: file\nbatch_age: 5ms\nlisten: 127.0.0.1:1\n", "--print-config", "--log-level", "error", "--listen=127.0.0.1:3")
	if !errors.Is(err, ErrDone) {
		t.Fatal(err)
	}
	for _, want := range []string{`tenant: "env"  # environment PLUMBLINE_TENANT`, `log_level: "error"  # flag --log-level`,
		`listen: "127.0.0.1:3"  # flag --listen`, `c.yaml:2`, "drain_budget: 30s  # default"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no line with %s in\n%s", want, out)
		}
	}
}

// An earlier name of a setting is still understood: as a flag, a variable and a key.
func TestEarlierNames(t *testing.T) {
	type renamed struct {
		testConfig
		SealIdle time.Duration `name:"seal-idle" aliases:"idle"`
	}
	load := func(args ...string) (*renamed, error) {
		cfg := &renamed{testConfig: *testDefaults()}
		return cfg, Load(testCommand, cfg, args, new(bytes.Buffer))
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("idle: 3s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err := load("--config", path); err != nil || cfg.SealIdle != 3*time.Second {
		t.Errorf("key: %s, %v", cfg.SealIdle, err)
	}
	if cfg, err := load("--idle", "1s"); err != nil || cfg.SealIdle != time.Second {
		t.Errorf("flag: %s, %v", cfg.SealIdle, err)
	}
	t.Setenv("PLUMBLINE_IDLE", "2s")
	if cfg, err := load(); err != nil || cfg.SealIdle != 2*time.Second {
		t.Errorf("variable: %s, %v", cfg.SealIdle, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	_, out, err := loadWith(t, "api_key: s3cret\nnats_url: nats://u:s3cret@a:1\n", "--help")
	if !errors.Is(err, ErrDone) || !strings.Contains(out, "PLUMBLINE_NATS_URL") || !strings.Contains(out, "30s") || !strings.Contains(out, "--times=CRON") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("help contains a secret:\n%s", out)
	}
	_, out, err = loadWith(t, "", "--version")
	if !errors.Is(err, ErrDone) || strings.TrimSpace(out) != "1.2.3" {
		t.Errorf("%v: %q", err, out)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"listen", "lisen", 1}, {"kitten", "sitting", 3}, {"nats_ulr", "nats_url", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Faults of every kind are reported together: of the form and keys of the file, of variables, of
// flags, and of the resulting settings.
func TestFaultsOfEveryKindComeInOneRound(t *testing.T) {
	t.Setenv("PLUMBLINE_BATCH_AGE", "soon")
	t.Setenv("PLUMBLINE_LISTNE", "x")
	_, _, err := loadWith(t, "agents: [[a]]\nlisten: nowhere\nno_such_thing: 1\nnats: {ulr: x, replicas: many}\nlog_format: xml\n",
		"--drain-budget", "never", "--lisen=x", "--nats-ulr", "y", "--tenant", "a b", "--nats-replicas=7", "--no-such-flag", "--log-level=loud", "--nats-url=http://a",
		"--nats-ca-file=none.pem", "--api-key")
	if !errors.Is(err, ErrUsage) {
		t.Fatalf("%v, want ErrUsage", err)
	}
	for _, want := range []string{
		"c.yaml:1: agents: want a list of plain values",
		"c.yaml:3: no_such_thing: unknown key",
		"c.yaml:4: nats_ulr: unknown key, did you mean nats_url?",
		"c.yaml:4: nats_replicas: ",
		"environment: PLUMBLINE_BATCH_AGE: ", "environment: PLUMBLINE_LISTNE: unknown variable, did you mean PLUMBLINE_LISTEN?",
		"--drain-budget: ", "--lisen: unknown flag, did you mean --listen?", "--nats-ulr: unknown flag, did you mean --nats-url?",
		"--no-such-flag: unknown flag: --help lists them",
		`listen: "nowhere": want host:port`, `log_format: "xml": want json or text`, `tenant: "a b": want`, "nats_replicas: 7: want 1 to 5",
		`log_level: "loud": want`, "nats_url: want nats://", "nats_ca_file: open ", "--api-key: its value is missing",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("no line %q in %v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n  "); got != 18 {
		t.Errorf("%d faults, want 18: %v", got, err)
	}
}

// Settings can be printed on a machine without the files that they name.
func TestPrintConfigReadsNoFiles(t *testing.T) {
	if _, _, err := loadWith(t, "nats_ca_file: none.pem\n", "--print-config"); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
}

func TestAddressesAreOfTheirKind(t *testing.T) {
	for flag, fault := range map[string]string{
		"--listen=127.0.0.1:65536":         "listen",
		"--listen=127.0.0.1:-1":            "listen",
		"--listen=127.0.0.1:0":             "",
		"--listen=127.0.0.1:http":          "",
		"--nats-url=http://a:4222":         "nats_url",
		"--nats-url=nats://a,http://b":     "nats_url",
		"--nats-url=nats://a,tls://b:4222": "",
		"--nats-url=wss://a":               "",
		"--clickhouse-dsn=http://a:8123":   "clickhouse_dsn",
		"--clickhouse-dsn=https://a:8443":  "clickhouse_dsn",
		"--clickhouse-dsn=tcp://a:9000/p":  "",
		"--clickhouse-cluster=a'b":         "clickhouse_cluster",
		"--clickhouse-cluster=evidence_1":  "",
	} {
		_, _, err := loadWith(t, "", flag)
		if fault == "" && err != nil || fault != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "\n  "+fault+": ")) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// What follows a broken file, a help flag or an end of flags is read as usual.
func TestGoodArgumentsAreLeftAlone(t *testing.T) {
	cfg, _, err := loadWith(t, "", "--nats-allow-unsafe", "--agents=x", "--agents", "y,z", "--clickhouse-allow-unsafe=false", "--listen", "127.0.0.1:1")
	if err != nil || !cfg.NATS.AllowUnsafe || cfg.ClickHouse.AllowUnsafe || strings.Join(cfg.Agents, "|") != "x|y|z" || cfg.Listen != "127.0.0.1:1" {
		t.Errorf("%+v, error %v", cfg, err)
	}
	if _, out, err := loadWith(t, "no_such_thing: 1\n", "--lisen=x", "-h"); !errors.Is(err, ErrDone) || !strings.Contains(out, "--listen") {
		t.Errorf("help together with faults: %v", err)
	}
	if _, _, err := loadWith(t, "", "--listen", "127.0.0.1:1", "left over", "--lisen"); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "left over") {
		t.Errorf("an argument: %v", err)
	}
}
