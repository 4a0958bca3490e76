package integration_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var exampleValues = []string{chart + "/ci/least-values.yaml", chart + "/ci/most-values.yaml"}

func TestChartIsLinted(t *testing.T) {
	for _, values := range exampleValues {
		if output, err := helm(t, "lint", "--values", values); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

// The chart makes the resources that the values ask for, and no Secret.
func TestChartRendersResources(t *testing.T) {
	perService := []string{"ConfigMap", "Deployment", "PodDisruptionBudget"}
	for values, want := range map[string][]string{
		exampleValues[0]: resources(perService, "ingest", "verifier", "drift", "exporter", "console"),
		exampleValues[1]: resources(append(perService, "NetworkPolicy"), chartServices...),
	} {
		want = append(want, "Service evidence-plumbline-ingest", "Service evidence-plumbline-console", "Job evidence-plumbline-migrate",
			"PersistentVolumeClaim evidence-plumbline-data")
		asked := chartServices[:4]
		if values == exampleValues[0] { // the other has a claim of its own
			want = append(want, "PersistentVolumeClaim evidence-plumbline-bundles")
		} else {
			asked = chartServices[:5]
		}
		for _, name := range asked {
			want = append(want, "Service evidence-plumbline-"+name+"-admin")
		}
		got := slices.Sorted(maps.Keys(render(t, values)))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the chart makes\n%s\nwant\n%s", values, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func resources(kinds []string, services ...string) (names []string) {
	for _, kind := range kinds {
		for _, service := range services {
			names = append(names, kind+" evidence-plumbline-"+service)
		}
	}
	return names
}

// Every pod may do its work and nothing else, is asked whether it works, and is given the time to end.
func TestChartPods(t *testing.T) {
	for values, drain := range map[string]int{exampleValues[0]: 30, exampleValues[1]: 60} {
		for name, m := range render(t, values) {
			p := m.Spec.Template.Spec
			if m.Kind != "Deployment" && m.Kind != "Job" {
				continue
			}
			s := p.SecurityContext
			if !s.RunAsNonRoot || s.RunAsUser != 10001 || s.FSGroupChangePolicy != "OnRootMismatch" || s.SeccompProfile["type"] != "RuntimeDefault" ||
				isNot(p.AutomountServiceAccountToken, false) || isNot(p.EnableServiceLinks, false) {
				t.Errorf("%s: %+v", name, p)
			}
			for _, c := range slices.Concat(p.InitContainers, p.Containers) {
				s := c.SecurityContext
				if isNot(s.AllowPrivilegeEscalation, false) || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
					t.Errorf("%s: %s: %+v", name, c.Name, s)
				}
				if !regexp.MustCompile(`^registry\.example(:5000)?/plumbline(:v\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$`).MatchString(c.Image) {
					t.Errorf("%s: %s has the image %s", name, c.Name, c.Image)
				}
				for _, e := range c.Env {
					if e.Name != "GOMEMLIMIT" && (e.Value != "" || e.ValueFrom.SecretKeyRef.Name == "" || e.ValueFrom.SecretKeyRef.Key == "") {
						t.Errorf("%s: variable %s is not from a Secret", name, e.Name)
					}
				}
				for _, m := range c.VolumeMounts {
					if writable := strings.HasPrefix(m.MountPath, "/var/lib/plumbline/") && c.Name == "exporter" || c.Name == "keys" && m.Name == "keys"; m.ReadOnly == writable {
						t.Errorf("%s: %s: %s is mounted with readOnly %v", name, c.Name, m.MountPath, m.ReadOnly)
					}
				}
			}
			if m.Kind == "Deployment" {
				checkLife(t, name, p, drain)
			}
		}
	}
}

func checkLife(t *testing.T, name string, p pod, drain int) {
	t.Helper()
	c := p.Containers[0]
	if c.LivenessProbe.HTTPGet != (struct{ Path, Port string }{"/healthz", "admin"}) || c.ReadinessProbe.HTTPGet != (struct{ Path, Port string }{"/readyz", "admin"}) {
		t.Errorf("%s: probes %+v, %+v", name, c.LivenessProbe, c.ReadinessProbe)
	}
	if c.Ports[0].Name != "admin" || c.Ports[0].ContainerPort != 9100 {
		t.Errorf("%s: ports %+v", name, c.Ports)
	}
	if p.TerminationGracePeriodSeconds < drain+10 {
		t.Errorf("%s: is killed after %d s; the drain takes up to %d s", name, p.TerminationGracePeriodSeconds, drain)
	}
}

// After an installation, Helm prints the addresses, and says which of them are not encrypted.
func TestChartNotes(t *testing.T) {
	for values, scheme := range map[string]string{exampleValues[0]: "http", exampleValues[1]: "https"} {
		notes, err := helm(t, "notes", "--values", values)
		for _, want := range []string{"Publish to " + scheme + "://evidence-plumbline-ingest.agents:8080 ", "service/evidence-plumbline-console 8081, then " + scheme + "://localhost:8081. "} {
			if err != nil || strings.Count(notes, want) != 1 {
				t.Errorf("%s: want %q in\n%s%v", values, want, notes, err)
			}
		}
		if warnings := strings.Count(notes, "It is not encrypted"); warnings != map[string]int{"http": 2}[scheme] {
			t.Errorf("%s: %d warnings in\n%s", values, warnings, notes)
		}
	}
}

func isNot(given *bool, want bool) bool { return given == nil || *given != want }

// The pods run as the user that the Dockerfile makes.
func TestChartRunsAsTheUserOfTheImage(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil || !strings.Contains(string(text), "useradd --system --uid 10001 ") {
		t.Errorf("the Dockerfile makes no user 10001, as whom the pods run: %v", err)
	}
}

// Each service accepts its rendered file of settings and its variables, whose every value arrives; each command line exists.
func TestChartSettingsAreAccepted(t *testing.T) {
	const unsafe = "broker.allowUnsafe=true,database.allowUnsafe=true"
	for values, more := range map[string][]string{
		exampleValues[0]: {"", unsafe + ",broker.login=password,broker.existingSecret=broker", "broker.login=credentials,broker.existingSecret=broker,broker.inboxPrefix=_INBOX_service,broker.tls.existingSecret=ca"},
		exampleValues[1]: {"", "console.settings.service_url={https://ingest.example:9100}"},
	} {
		for _, set := range more {
			made := render(t, values, set)
			for _, name := range chartServices {
				if made["Deployment evidence-plumbline-"+name].Kind != "" {
					checkSettings(t, name, made)
				}
			}
			job := made["Job evidence-plumbline-migrate"]
			args := append(slices.Clone(job.Spec.Template.Spec.Containers[0].Args), "--clickhouse-dsn=clickhouse://a@127.0.0.1:1/b", "--help")
			output, err := exec.CommandContext(t.Context(), program(t, "plumbline"), append([]string{"migrate"}, args...)...).CombinedOutput()
			if err != nil || job.Metadata.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
				t.Errorf("plumbline migrate %v: %v\n%s", args, err, output)
			}
		}
	}
}

func checkSettings(t *testing.T, name string, made map[string]manifest) {
	t.Helper()
	text, file := made["ConfigMap evidence-plumbline-"+name].Data["config.yaml"], filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := made["Deployment evidence-plumbline-"+name].Spec.Template.Spec.Containers[0]
	if !slices.Equal(c.Command, []string{name}) || !slices.Equal(c.Args, []string{"--config", "/etc/plumbline/config/config.yaml"}) {
		t.Errorf("%s: command %v, arguments %v", name, c.Command, c.Args)
	}
	cmd := exec.CommandContext(t.Context(), program(t, name), "--config", file, "--print-config")
	cmd.Env = environment()
	variables := 0
	for _, e := range c.Env {
		value := cmp.Or(e.Value, "secret")
		if strings.HasSuffix(e.Name, "_DSN") {
			value = "clickhouse://user@db.example:9000/plumbline"
		}
		if e.Name != "GOMEMLIMIT" { // which is for Go, and no setting
			variables++
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s\n%s", name, err, output, text)
		return
	}
	lines := len(regexp.MustCompile(`(?m)^[a-z]`).FindAllString(text, -1))
	if from, set := strings.Count(string(output), "# file "+file), strings.Count(string(output), "# environment PLUMBLINE_"); from != lines || set != variables {
		t.Errorf("%s: %d settings are from the file, which has %d, and %d from %d variables\n%s", name, from, lines, set, variables, output)
	}
}

// Each user of the broker receives answers below its own prefix, or all of them below _INBOX.
func TestChartInboxPrefixes(t *testing.T) {
	for set, prefix := range map[string]string{
		"broker.login=nkeys,broker.existingSecret=x":                                        "_INBOX_service",
		"broker.login=credentials,broker.existingSecret=x,broker.inboxPrefix=_INBOX_prod.a": "_INBOX_prod.a",
		"broker.login=credentials,broker.existingSecret=x":                                  "",
	} {
		made := render(t, exampleValues[0], set)
		of := map[string]string{"operator": strings.Join(made["Job evidence-plumbline-migrate"].Spec.Template.Spec.Containers[0].Args, "\n")}
		for _, name := range []string{"ingest", "verifier", "drift", "exporter"} {
			of[name] = made["ConfigMap evidence-plumbline-"+name].Data["config.yaml"]
		}
		for name, text := range of {
			found := regexp.MustCompile(`nats.inbox.prefix[=:] ?(\S+)`).FindStringSubmatch(text)
			if want := prefix + "." + name; prefix == "" && found != nil || prefix != "" && (found == nil || found[1] != want) {
				t.Errorf("%s: %s has the prefix %v", set, name, found)
			}
		}
	}
}

// The schema of the values has the settings of each service that the chart does not set itself, and no other: an unknown
// one is refused before anything is installed.
func TestChartSchemaHasTheSettings(t *testing.T) {
	text, err := os.ReadFile(chart + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]json.RawMessage
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var shared object
	if err := json.Unmarshal(schema.Properties["settings"], &shared); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(chart + "/templates/_config.tpl")
	if err != nil || len(sources) != 1 {
		t.Fatal(sources, err)
	}
	template, err := os.ReadFile(sources[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range chartServices {
		var service struct {
			Properties struct{ Settings object }
		}
		if err := json.Unmarshal(schema.Properties[name], &service); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program(t, name), "--print-config")
		cmd.Env = append(environment(), "PLUMBLINE_WEBHOOKS_FILE=endpoints.yaml")
		output, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-z0-9_]+):`).FindAllStringSubmatch(string(output), -1) {
			_, listed := service.Properties.Settings.Properties[m[1]]
			delete(service.Properties.Settings.Properties, m[1])
			// What is secret comes from the environment; key_file would part the key from its list.
			_, ofAll := shared.Properties[m[1]]
			if m[1] == "service_url" { // the chart sets it where the values do not
				continue
			}
			own := ofAll || strings.Contains(string(template), `"`+m[1]+`"`) || slices.Contains([]string{"nats_user", "nats_password", "nats_token", "clickhouse_dsn", "letters_dsn", "key_file"}, m[1])
			if listed == own {
				t.Errorf("%s.settings.%s: is set by the chart or for all services: %v; is in values.schema.json: %v", name, m[1], own, listed)
			}
		}
		for unknown := range service.Properties.Settings.Properties {
			t.Errorf("%s.settings.%s: %s has no such setting", name, unknown, name)
		}
	}
}

// Wrong values are refused before anything is installed, and the message says what to change.
func TestChartRefusesWrongValues(t *testing.T) {
	for set, want := range map[string]string{
		"exporter.bundles.accessModes={ReadWriteMany},ingest.readBundles=true,console.enabled=false,database.reader.existingSecret=": "which bundle belongs to whom",
		"verifier.replica=3":                           "replica",
		"verifier.settings.batch_row=3":                "batch_row",
		"verifier.settings.nats_url=nats://other:4222": "nats_url",
		"verifier.replicas=0":                          "minimum",
		"image.tag=latest":                             "/image/tag",
		"image.repository=":                            "/image/repository",
		"broker.url=":                                  "/broker/url",
		"broker.url=nats://user:password@nats:4222":    "/broker/url",
		"broker.login=nkeys":                           "broker.login is nkeys: broker.existingSecret must name the Secret",
		"broker.existingSecret=x":                      "say what the Secret holds",
		"broker.tls.clientCertificate=true":            "needs broker.tls.existingSecret",
		"broker.inboxPrefix=_INBOX.>":                  "/broker/inboxPrefix",
		"broker.login=nkeys,broker.existingSecret=x,broker.inboxPrefix=_INBOX_a": "broker.inboxPrefix is set, but broker.login is nkeys",
		"exporter.replicas=2":                            "the volume must be ReadWriteMany",
		"ingest.readBundles=true":                        "must have ReadWriteMany",
		"console.readBundles=true":                       "must have ReadWriteMany",
		"ingest.keys.existingSecret=":                    "ingest.keys.existingSecret is required",
		"ingest.tls.clientCASecret=x":                    "needs ingest.tls.existingSecret",
		"tokens.existingSecret=":                         "/tokens/existingSecret",
		"database.service.existingSecret=":               "/database/service/existingSecret",
		"database.reader.existingSecret=":                "console.enabled needs database.reader.existingSecret",
		"database.admin.existingSecret=":                 "migrate.enabled needs database.admin.existingSecret",
		"webhooks.enabled=true":                          "webhooks.enabled needs webhooks.existingSecret",
		"drift.files.secret=a,drift.files.configMap=b":   "not both",
		"exporter.data.accessModes={ReadOnlyMany}":       "accessModes",
		"settings.log_level=loud":                        "log_level",
		"console.replicas=2":                             "/console/replicas",
		"console=null":                                   "console",
		"ingest.tls=null":                                "missing property 'tls'",
		"verifer.replicas=2":                             "verifer",
		"tenant=a b":                                     "/tenant",
		"drainSeconds=0":                                 "/drainSeconds",
		"console.settings.ingest_url=http://ingest:8080": "/console/settings/ingest_url",
		"exporter.settings.s3_bucket=evidence":           "exporter.settings.s3_bucket needs exporter.s3.existingSecret",
		"exporter.s3.existingSecret=s3":                  "nothing would be copied",
		// Kubernetes would refuse these after the Job has run.
		"podAnnotations.a=true":            "/podAnnotations/a",
		"ingest.service.annotations.a=1":   "/ingest/service/annotations/a",
		"drift.nodeSelector.a=true":        "/drift/nodeSelector/a",
		"migrate.tolerations={a}":          "/migrate/tolerations/0",
		"ingest.resources.limit.memory=1G": "limit",
		"ingest.goMemoryLimit=3Gi":         "/ingest/goMemoryLimit",
	} {
		output, err := helm(t, "template", "--values", exampleValues[0], "--set", set)
		if err == nil {
			t.Errorf("--set %s is accepted", set)
		} else if !strings.Contains(err.Error()+output, want) {
			t.Errorf("--set %s: want %q in\n%v", set, want, err)
		}
	}
}

// A field that Kubernetes does not have is found, wherever it comes from: here from a value that the schema leaves to Kubernetes.
func TestChartFieldsAreKnown(t *testing.T) {
	_, err := helm(t, "template", "--values", exampleValues[0], "--set", "ingest.affinity.nodeAffinities.a=b")
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.template.spec.affinity.nodeAffinities"`) {
		t.Errorf("a misspelt affinity: %v", err)
	}
}

// The console finds the operators' interface of every other service, also of pods that are not ready, and NetworkPolicies let
// it through, there and to ingest. A policy names ports that its pods have.
func TestChartConsoleReachesTheServices(t *testing.T) {
	made := render(t, exampleValues[1])
	console := made["NetworkPolicy evidence-plumbline-console"]
	urls := made["ConfigMap evidence-plumbline-console"].Data["config.yaml"]
	for _, name := range chartServices {
		has := map[string]bool{}
		for _, port := range made["Deployment evidence-plumbline-"+name].Spec.Template.Spec.Containers[0].Ports {
			has[port.Name] = true
		}
		admitted := map[string]bool{}
		for _, r := range made["NetworkPolicy evidence-plumbline-"+name].Spec.Ingress {
			for _, port := range r.Ports {
				if !has[port.Port] {
					t.Errorf("the NetworkPolicy of %s has port %s, which no container has", name, port.Port)
				}
				for _, from := range r.From {
					labels := from.PodSelector.MatchLabels
					if labels["app.kubernetes.io/component"] == "console" && labels["app.kubernetes.io/instance"] == "evidence" {
						admitted[port.Port] = true
					}
				}
			}
		}
		if name == "console" {
			continue
		}
		if !admitted["admin"] || admitted["publish"] != (name == "ingest") {
			t.Errorf("the NetworkPolicy of %s lets the console reach %v", name, admitted)
		}
		service := made["Service evidence-plumbline-"+name+"-admin"].Spec
		if service.ClusterIP != "None" || !service.NotReady || service.Ports[0].Port != 9100 || service.Ports[0].TargetPort != "admin" || service.Selector["app.kubernetes.io/component"] != name {
			t.Errorf("the Service of %s: %+v", name, service)
		}
		if !strings.Contains(urls, "- dns+http://evidence-plumbline-"+name+"-admin:9100\n") {
			t.Errorf("the console does not ask %s:\n%s", name, urls)
		}
	}
	last := console.Spec.Egress[len(console.Spec.Egress)-1]
	if len(last.Ports) != 2 || last.Ports[0].Port != "admin" || last.Ports[1].Port != "publish" || last.To[0].PodSelector.MatchLabels["app.kubernetes.io/instance"] != "evidence" {
		t.Errorf("the console may reach %+v", console.Spec.Egress)
	}
	if rules := made["NetworkPolicy evidence-plumbline-verifier"].Spec.Egress; len(rules) != len(console.Spec.Egress)-1 {
		t.Errorf("the verifier may reach %+v", rules)
	}
}

// One exporter with volumes of one node ends before the next one starts; the others overlap.
func TestChartReplacesPods(t *testing.T) {
	for values, want := range map[string]string{exampleValues[0]: "Recreate", exampleValues[1]: "RollingUpdate"} {
		made := render(t, values)
		if got := made["Deployment evidence-plumbline-exporter"].Spec.Strategy.Type; got != want {
			t.Errorf("%s: the exporter's strategy is %q, want %q", values, got, want)
		}
		if got := made["Deployment evidence-plumbline-verifier"].Spec.Strategy.Type; got != "RollingUpdate" {
			t.Errorf("%s: the verifier's strategy is %q", values, got)
		}
		for name, m := range made {
			if m.Kind == "PersistentVolumeClaim" && m.Metadata.Annotations["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s: helm uninstall removes the evidence", name)
			}
		}
	}
}
