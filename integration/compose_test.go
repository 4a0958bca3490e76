package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"gopkg.in/yaml.v3"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// composition is the part of docker-compose.yml that the test needs.
type composition struct {
	Services map[string]struct {
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		CPUShares   int               `yaml:"cpu_shares"`
	} `yaml:"services"`
}

func readComposition(t testing.TB) composition {
	t.Helper()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c composition
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComposeFileIsAccepted runs docker-compose itself.
func TestComposeFileIsAccepted(t *testing.T) {
	if _, err := exec.LookPath("docker-compose"); err != nil {
		t.Skip("docker-compose is not installed, so it is not asked whether it accepts docker-compose.yml: apt-get install docker-compose")
	}
	output, err := exec.Command("docker-compose", "--file", "../docker-compose.yml", "config", "--quiet").CombinedOutput()
	if err != nil {
		t.Errorf("docker-compose config: %v\n%s", err, output)
	}
}

// In the compose file drift and exporter have a tenth of the shares of those on which answers and verdicts wait.
func TestComposeShares(t *testing.T) {
	c := readComposition(t)
	for name, want := range map[string]int{"nats": 1024, "clickhouse": 1024, "ingest": 1024, "verifier": 1024, "console": 1024, "webhooks": 1024, "drift": 102, "exporter": 102} {
		if got := c.Services[name].CPUShares; got != want {
			t.Errorf("%s: cpu_shares is %d, want %d", name, got, want)
		}
	}
}

// TestComposeBroker: the broker of the compose file has the settings that the guarantees need.
func TestComposeBroker(t *testing.T) {
	options, err := server.ProcessConfigFile("../deploy/compose/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !options.JetStream || !options.SyncAlways || options.StoreDir != "/data" || options.MaxPayload < 1<<20 {
		t.Errorf("jetstream %v, sync always %v, store %q, payload %d", options.JetStream, options.SyncAlways, options.StoreDir, options.MaxPayload)
	}
}

// TestComposeServices starts every service with the command and environment of the
// compose file, in its order. The variables that the file leaves open refer to the
// embedded broker and engine.
func TestComposeServices(t *testing.T) {
	t.Parallel()
	s := newServers(t, place{})
	c := readComposition(t)
	open := s.variables()
	s.runToEnd(c, "first-start", open)
	s.runToEnd(c, "migrate", open)

	s.ingest = s.composed(c, "ingest", open, "PLUMBLINE_LISTEN")
	s.verifier = s.composed(c, "verifier", open, "PLUMBLINE_ADMIN_LISTEN")
	s.drift = s.composed(c, "drift", open, "PLUMBLINE_ADMIN_LISTEN")
	s.exporter = s.composed(c, "exporter", open, "PLUMBLINE_ADMIN_LISTEN")
	alerts := s.receiver(open["PLUMBLINE_WEBHOOKS_FILE"])
	others := []*service{s.composed(c, "console", open, "PLUMBLINE_ADMIN_LISTEN"), s.composed(c, "webhooks", open, "PLUMBLINE_ADMIN_LISTEN")}
	for _, service := range append(s.services(), others...) {
		service.awaitReady()
	}
	token, err := os.ReadFile(filepath.Join(s.dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	s.publisher = &publisher{t: t, url: "http://" + s.ingest.address, token: string(bytes.TrimSpace(token))}
	s.publisher.register(pipelinetest.Card("ac", "a"))
	s.publisher.publish([][]byte{trace("tr-1", "s", 1), trace("tr-2", "s", 2), pipelinetest.Trace("tr-3", "a", "ac", "s", "2026-02-01T00:00:03Z", "pay").Data}, nil)
	s.publisher.end("a", "s")
	s.await("the traces in a bundle", func(c store.Counts) bool { return c.Traces == 3 && c.Bundles == 1 })
	if seen := s.checkAtRest(s.publisher.acked); seen.Traces != 3 || seen.Sealed != 3 || seen.Points != 3 {
		t.Errorf("seen %+v", seen)
	}
	var listed struct {
		Traces  []any `json:"traces"`
		Bundles []struct {
			SHA256 string `json:"sha256"`
		} `json:"bundles"`
	}
	s.publisher.read("/v1/traces?agent_id=a", &listed)
	s.publisher.read("/v1/bundles", &listed)
	if len(listed.Traces) != 3 || len(listed.Bundles) != 1 {
		t.Fatalf("ingest lists %+v", listed)
	}
	if bundle := s.publisher.read("/v1/bundles/"+listed.Bundles[0].SHA256, nil); schema.DigestOf(bundle).String() != listed.Bundles[0].SHA256 {
		t.Errorf("ingest serves a bundle of %d bytes, which are not those that were sealed", len(bundle))
	}
	if page := s.consolePage(open["PLUMBLINE_CONSOLE_LISTEN"], s.publisher.token, "/chain?sha256="+listed.Bundles[0].SHA256); !strings.Contains(page, "INTACT: this bundle is unchanged") {
		t.Errorf("the console shows of the bundle:\n%s", page)
	}
	pipelinetest.Await(t, "the backlogs on the console's first page", func() bool {
		page := s.consolePage(open["PLUMBLINE_CONSOLE_LISTEN"], s.publisher.token, "/")
		return strings.Contains(page, "<bdi>verifier</bdi>") && !strings.Contains(page, "does not work")
	})
	if body := <-alerts; !strings.Contains(body, `"tr-3"`) {
		t.Errorf("the first alert that arrives is %s", body)
	}
	for _, service := range append(s.services(), others...) {
		service.terminate()
	}
}

// receiver writes the file of an endpoint for all violations, and returns the bodies of the requests that it gets.
func (s *site) receiver(file string) <-chan string {
	s.t.Helper()
	bodies := make(chan string, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("webhook-signature") == "" {
			s.t.Errorf("an alert without a signature, or cut: %v", err)
		}
		bodies <- string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	s.t.Cleanup(endpoint.Close)
	secret := filepath.Join(filepath.Dir(file), "security.secret")
	for path, text := range map[string]string{
		secret: "whsec_" + strings.Repeat("A", 43) + "=\n",
		file:   fmt.Sprintf("endpoints:\n  - {name: security, url: %q, secret_file: %q, types: [violation]}\n", endpoint.URL, secret),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return bodies
}

// consolePage logs in at the console, and returns a page.
func (s *site) consolePage(address, token, path string) string {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	visitor := http.Client{Jar: jar}
	answer, err := visitor.PostForm("http://"+address+"/login", url.Values{"token": {token}, "next": {path}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(page)
}

// variables returns the values of the variables that the compose file leaves open.
func (s *site) variables() map[string]string {
	s.t.Helper()
	admin, service, reader := s.dsn(s.engine.AdminDSN()), s.dsn(s.engine.ServiceDSN()), s.dsn(s.engine.ReaderDSN())
	adminPassword, _ := admin.User.Password()
	servicePassword, _ := service.User.Password()
	readerPassword, _ := reader.User.Password()
	open := map[string]string{
		"PLUMBLINE_NATS_URL": s.broker.URL(), "PLUMBLINE_NATS_MONITOR_URL": s.broker.MonitorURL(),
		"PLUMBLINE_CLICKHOUSE_ADDRESS": admin.Host,
		"PLUMBLINE_ADMIN_PASSWORD":     adminPassword, "PLUMBLINE_SERVICE_PASSWORD": servicePassword,
		"PLUMBLINE_READER_PASSWORD": readerPassword, "PLUMBLINE_BUNDLE_DIR": filepath.Join(s.dir, "bundles"),
		"PLUMBLINE_DATA_DIR": s.dir, "PLUMBLINE_TOKEN_FILE": filepath.Join(s.dir, "tokens.jsonl"),
		"PLUMBLINE_LISTEN":                freeAddress(s.t),
		"PLUMBLINE_HANDSHAKE_KEY_FILE":    filepath.Join(s.dir, "keys", "handshake.key"),
		"PLUMBLINE_MICRO_KEY_FILE":        filepath.Join(s.dir, "keys", "micro.key"),
		"PLUMBLINE_VERIFIER_ADMIN_LISTEN": freeAddress(s.t),
		"PLUMBLINE_DRIFT_ADMIN_LISTEN":    freeAddress(s.t),
		"PLUMBLINE_EXPORTER_ADMIN_LISTEN": freeAddress(s.t),
		"PLUMBLINE_CONSOLE_LISTEN":        freeAddress(s.t),
		"PLUMBLINE_CONSOLE_ADMIN_LISTEN":  freeAddress(s.t),
		"PLUMBLINE_WEBHOOKS_ADMIN_LISTEN": freeAddress(s.t),
		"PLUMBLINE_WEBHOOKS_FILE":         filepath.Join(s.dir, "webhooks.yaml"),
	}
	services := []string{}
	for _, variable := range []string{"PLUMBLINE_LISTEN", "PLUMBLINE_VERIFIER_ADMIN_LISTEN", "PLUMBLINE_DRIFT_ADMIN_LISTEN", "PLUMBLINE_EXPORTER_ADMIN_LISTEN"} {
		services = append(services, "http://"+open[variable])
	}
	open["PLUMBLINE_CONSOLE_SERVICES"] = strings.Join(services, ",")
	return open
}

func (s *site) dsn(text string) *url.URL {
	s.t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// composed starts a service as the compose file does. listen is the variable
// for the listen address of its operator's interface.
func (s *site) composed(c composition, name string, open map[string]string, listen string) *service {
	s.t.Helper()
	path, args, env := s.invocation(c, name, open)
	address, found := "", false
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, listen+"="); ok {
			address, found = value, true
		}
	}
	if !found {
		s.t.Fatalf("service %s has no %s", name, listen)
	}
	return run(s.t, &service{name: name, program: path, args: args, env: env, address: address})
}

// runToEnd runs a service that is expected to end, and requires exit code 0.
func (s *site) runToEnd(c composition, name string, open map[string]string) {
	s.t.Helper()
	path, args, env := s.invocation(c, name, open)
	cmd := exec.Command(path, args...)
	cmd.Env = append(env, "PATH="+filepath.Dir(program(s.t, "plumbline"))+":"+os.Getenv("PATH")) // in the image the programs are on the path
	if output, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("service %s: %v\n%s", name, err, output)
	}
}

// invocation returns how the compose file starts a service.
func (s *site) invocation(c composition, name string, open map[string]string) (path string, args, env []string) {
	s.t.Helper()
	service, ok := c.Services[name]
	if !ok || len(service.Command) == 0 {
		s.t.Fatalf("docker-compose.yml has no service %s with a command", name)
	}
	for variable, value := range service.Environment {
		if value = expand(value, open); strings.Contains(value, "${") {
			s.t.Errorf("service %s: %s=%s has no default: there is something to edit", name, variable, value)
		}
		env = append(env, variable+"="+value)
	}
	env = append(env, environment()...)
	return s.inImage(service.Command[0]), service.Command[1:], env
}

// inImage returns the program that has a name in the image of the Dockerfile.
func (s *site) inImage(name string) string {
	s.t.Helper()
	dockerfile, err := os.ReadFile("../Dockerfile")
	if err != nil {
		s.t.Fatal(err)
	}
	copied := regexp.MustCompile(`(?m)^COPY (\S+) /usr/local/bin/` + regexp.QuoteMeta(name) + `$`).FindSubmatch(dockerfile)
	if copied != nil {
		return filepath.Join("..", string(copied[1]))
	}
	return program(s.t, name)
}

var openVariable = regexp.MustCompile(`\$\{([A-Z_]+):-([^}]*)\}`)

// expand replaces ${VARIABLE:-default} with values, as compose does.
func expand(text string, values map[string]string) string {
	return openVariable.ReplaceAllStringFunc(text, func(found string) string {
		parts := openVariable.FindStringSubmatch(found)
		if value, ok := values[parts[1]]; ok {
			return value
		}
		return parts[2]
	})
}
