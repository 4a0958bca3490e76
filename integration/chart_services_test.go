package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// TestChartServices starts what the chart renders, as processes, on a real broker and a real database: first the Job, then
// each Deployment with its command, its variables and the files that it mounts. A trace is published, judged and sealed,
// ingest serves the bundle, and the console shows what all services say. The broker asks each service for its own nkey, over TLS
// with a client's certificate.
func TestChartServices(t *testing.T) {
	values, given := filepath.Join(t.TempDir(), "values.yaml"), secrets{}
	s := newServers(t, place{nats: nkeyBroker(t, given)})
	token := chartSecrets(t, s, given)
	text := fmt.Sprintf(`
image: {repository: registry.example/plumbline}
broker: {url: %q, monitorUrl: %q, login: nkeys, existingSecret: broker, tls: {existingSecret: broker-tls, clientCertificate: true}}
database:
  service: {existingSecret: database, key: service}
  reader: {existingSecret: database, key: reader}
  admin: {existingSecret: database, key: admin}
tokens: {existingSecret: tokens}
ingest: {keys: {existingSecret: keys}, readBundles: true, replicas: 1}
exporter: {bundles: {accessModes: [ReadWriteMany]}, settings: {every: 50ms}}
verifier: {settings: {batch_age: 50ms}}
webhooks: {enabled: true, existingSecret: webhooks}
`, s.place.nats.URL, s.place.nats.MonitorURL)
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	made, claims := render(t, values), t.TempDir()
	for _, name := range []string{"evidence-plumbline-data", "evidence-plumbline-bundles"} {
		if _, ok := made["PersistentVolumeClaim "+name]; !ok {
			t.Fatalf("the chart makes no volume %s", name)
		}
		if err := os.Mkdir(filepath.Join(claims, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	job := made["Job evidence-plumbline-migrate"].Spec.Template.Spec
	migrate := inPod(t, made, job, given, claims, nil)
	cmd := exec.CommandContext(t.Context(), migrate.program, migrate.args...)
	cmd.Env = migrate.env
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the Job: %v\n%s", err, output)
	}
	running := map[string]*service{}
	for _, name := range chartServices {
		running[name] = run(t, inPod(t, made, made["Deployment evidence-plumbline-"+name].Spec.Template.Spec, given, claims, running))
	}
	for _, service := range running {
		service.awaitReady()
	}
	s.publisher = &publisher{t: t, url: "http://" + running["ingest"].public, token: token}
	s.publisher.register(pipelinetest.Card("ac", "a"))
	s.publisher.publish([][]byte{trace("tr-1", "s", 1), trace("tr-2", "s", 2)}, nil)
	s.publisher.end("a", "s")
	s.await("the traces in a bundle", func(c store.Counts) bool { return c.Traces == 2 && c.Bundles == 1 })
	var listed struct {
		Bundles []struct {
			SHA256 string `json:"sha256"`
		} `json:"bundles"`
	}
	s.publisher.read("/v1/bundles", &listed)
	if len(listed.Bundles) != 1 || len(s.publisher.read("/v1/bundles/"+listed.Bundles[0].SHA256, nil)) == 0 {
		t.Errorf("ingest lists %+v", listed)
	}
	pipelinetest.Await(t, "the backlogs of all services on the console's first page", func() bool {
		page := s.consolePage(running["console"].public, token, "/")
		for _, consumer := range []string{"verifier", "drift", "exporter", "webhook-security"} {
			if !strings.Contains(page, "<bdi>"+consumer+"</bdi>") {
				return false
			}
		}
		return !strings.Contains(page, "does not work")
	})
	for _, service := range running {
		service.terminate()
	}
}

// nkeyBroker runs a NATS server with the users that plumbline nats-config writes, which takes only clients with a certificate. It
// adds the Secrets of the services' logins, and returns how the test logs in.
func nkeyBroker(t *testing.T, given secrets) stream.Config {
	t.Helper()
	dir, authority := t.TempDir(), transporttest.New(t)
	if output, err := exec.CommandContext(t.Context(), program(t, "plumbline"), "nats-config", dir).CombinedOutput(); err != nil {
		t.Fatalf("plumbline nats-config: %v\n%s", err, output)
	}
	file := filepath.Join(dir, "server.conf")
	text := fmt.Sprintf(`listen: "127.0.0.1:-1"
http: "127.0.0.1:-1"
max_payload: 8MB
jetstream { store_dir: %q, sync_interval: always }
tls { ca_file: %q, cert_file: %q, key_file: %q, verify: true }
accounts { include "accounts.conf" }
`, filepath.Join(dir, "store"), authority.CAFile, authority.CertFile, authority.KeyFile)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs = true
	nats, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(nats.WaitForShutdown)
	t.Cleanup(nats.Shutdown)
	if !nats.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	given["broker"] = contents(t, filepath.Join(dir, "services"))
	given["broker-tls"] = map[string]string{
		"ca.crt": content(t, authority.CAFile), "tls.crt": content(t, authority.CertFile), "tls.key": content(t, authority.KeyFile),
	}
	return stream.Config{
		URL: "tls://" + nats.Addr().String(), MonitorURL: "http://" + nats.MonitorAddr().String(), Replicas: 1,
		NKeySeedFile: filepath.Join(dir, "services", "operator.nk"), InboxPrefix: "_INBOX_service.operator",
		CAFile: authority.CAFile, CertFile: authority.CertFile, KeyFile: authority.KeyFile,
	}
}

// chartSecrets makes the Secrets with the commands of docs/HELM.md, and returns a token.
func chartSecrets(t *testing.T, s *site, given secrets) string {
	t.Helper()
	dir := t.TempDir()
	plumbline := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program(t, "plumbline"), args...)
		cmd.Env, cmd.Dir = environment(), dir
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("plumbline %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(output))
	}
	token := plumbline("token", "new", "--file", "tokens.jsonl", "--name", "all", "--agent", "*", "--scope", "traces:write,traces:read,bundles:read,cards:write,cards:read,sessions:write")
	plumbline("keys", "new", "handshake", "--file", "keys/handshake.key")
	plumbline("keys", "new", "micro", "--file", "keys/micro.key")
	given["tokens"] = map[string]string{"tokens.jsonl": content(t, filepath.Join(dir, "tokens.jsonl"))}
	given["keys"] = contents(t, filepath.Join(dir, "keys"))
	given["database"] = map[string]string{"service": s.engine.ServiceDSN(), "reader": s.engine.ReaderDSN(), "admin": s.engine.AdminDSN()}
	given["webhooks"] = map[string]string{
		"webhooks.yaml":   "endpoints:\n  - {name: security, url: 'https://127.0.0.1:1/', secret_file: /etc/plumbline/webhooks/security.secret}\n",
		"security.secret": plumbline("webhook", "secret") + "\n",
	}
	return token
}

// contents returns the files of a directory, as kubectl create secret generic --from-file=DIR takes them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		files[e.Name()] = content(t, filepath.Join(dir, e.Name()))
	}
	return files
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inPod returns a pod's container as a process: its files lie below a directory, and its ports are free ones of this machine.
// It finds the services that run already where the cluster's DNS would find them.
func inPod(t *testing.T, made map[string]manifest, p pod, given secrets, claims string, running map[string]*service) *service {
	t.Helper()
	c := p.Containers[0]
	root := mounted(t, made, p, c, given, claims)
	here := &service{name: c.Name, program: program(t, c.Command[0]), address: freeAddress(t), public: freeAddress(t)}
	ports := []string{"0.0.0.0:9100", here.address, "0.0.0.0:8080", here.public, "0.0.0.0:8081", here.public}
	for name, other := range running {
		ports = append(ports, "evidence-plumbline-"+name+"-admin:9100", other.address)
	}
	move := func(text string) string {
		text = strings.NewReplacer("/etc/plumbline/", root+"/etc/plumbline/", "/var/lib/plumbline/", root+"/var/lib/plumbline/").Replace(text)
		return strings.NewReplacer(ports...).Replace(text)
	}
	for _, arg := range append(c.Command[1:], c.Args...) {
		here.args = append(here.args, move(arg))
	}
	for _, e := range c.Env {
		here.env = append(here.env, e.Name+"="+given[e.ValueFrom.SecretKeyRef.Name][e.ValueFrom.SecretKeyRef.Key])
	}
	here.env = append(here.env, environment()...)
	for _, name := range []string{"config/config.yaml", "webhooks/webhooks.yaml"} {
		path := filepath.Join(root, "etc/plumbline", name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // this container does not mount it
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(move(string(text))), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return here
}
