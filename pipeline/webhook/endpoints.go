package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// Endpoint is one receiver of alerts.
type Endpoint struct {
	Name        string              `yaml:"name"`          // names the endpoint's consumer in the broker, and its metrics
	URL         string              `yaml:"url"`           // https, or http on loopback
	SecretFile  string              `yaml:"secret_file"`   // see ReadSecrets
	Types       []subject.AlertKind `yaml:"types"`         // of the alerts that it gets; empty: all
	Severity    schema.Severity     `yaml:"severity"`      // the least one of the violations and findings that it gets; empty: all
	GiveUpAfter time.Duration       `yaml:"give_up_after"` // age of an alert at which it is given up; 72 hours
	Attempts    int                 `yaml:"attempts"`      // after so many refusals (4xx) an alert is given up; 12
	Timeout     time.Duration       `yaml:"timeout"`       // of one attempt; 15 seconds
	AllowHTTP   bool                `yaml:"allow_http"`    // plain HTTP beyond loopback
}

const (
	mostEndpoints = 32
	mostFileBytes = 1 << 20
)

// ReadEndpoints reads the list of endpoints, in YAML, and reports every fault in it: an unknown
// key is one. It refuses a file that others can write, because it decides where alerts go. No
// error contains a URL, which may contain a secret.
func ReadEndpoints(path string) ([]Endpoint, error) {
	text, err := config.ReadGuarded(path, mostFileBytes, 0o022, "lets others change it: chmod go-w")
	if err != nil {
		return nil, err
	}
	endpoints, err := parseEndpoints(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return endpoints, nil
}

func parseEndpoints(text []byte) ([]Endpoint, error) {
	var list struct {
		Endpoints []Endpoint `yaml:"endpoints"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document")
	}
	if len(list.Endpoints) == 0 || len(list.Endpoints) > mostEndpoints {
		return nil, fmt.Errorf("endpoints: %d are listed, want 1 to %d", len(list.Endpoints), mostEndpoints)
	}
	var faults []error
	names := map[string]bool{}
	for i := range list.Endpoints {
		e := &list.Endpoints[i]
		e.complete()
		for _, fault := range e.faults() {
			faults = append(faults, fmt.Errorf("endpoint %d (%.80q): %s", i+1, e.Name, fault))
		}
		if names[e.Name] {
			faults = append(faults, fmt.Errorf("endpoint %d (%.80q): name: is given twice", i+1, e.Name))
		}
		names[e.Name] = true
	}
	return list.Endpoints, errors.Join(faults...)
}

// complete fills in the defaults.
func (e *Endpoint) complete() {
	if e.GiveUpAfter == 0 {
		e.GiveUpAfter = 72 * time.Hour
	}
	if e.Attempts == 0 {
		e.Attempts = 12
	}
	if e.Timeout == 0 {
		e.Timeout = 15 * time.Second
	}
}

// The longest timeout ends within the drain budget of a service, so a stop waits for the answer.
const mostTimeout = 25 * time.Second

func (e *Endpoint) faults() (faults []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	check(schema.PlainName(e.Name), "name: want 1 to 64 of a-z, A-Z, 0-9, _ and -")
	u, err := url.Parse(e.URL) // do not repeat it: it may contain a secret
	check(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"), "url: want https://host/path")
	if err == nil {
		check(u.User == nil, "url: has a user or a password: the signature is what a receiver checks")
		check(u.Fragment == "", "url: has a fragment")
		check(u.Scheme != "http" || e.AllowHTTP || transport.Loopback(u.Hostname()),
			"url: want https; plain http beyond this machine shows alerts to the network, and needs allow_http: true")
	}
	if e.SecretFile == "" {
		check(false, "secret_file: is missing; plumbline webhook secret makes a secret")
	} else if strings.HasPrefix(e.SecretFile, secretPrefix) { // do not repeat it
		check(false, "secret_file: is a secret itself: write the secret to a file that not everyone may read, and name that")
	} else if _, err := ReadSecrets(e.SecretFile); err != nil {
		check(false, "secret_file: %v", err)
	}
	for _, kind := range e.Types {
		check(slices.Contains(kinds(), kind), "types: %.80q: want some of %v", kind, kinds())
	}
	check(e.Severity == "" || rank(e.Severity) > 0, "severity: %.80q: want MEDIUM, HIGH or CRITICAL", e.Severity)
	check(e.GiveUpAfter >= time.Minute, "give_up_after: %s: want at least 1m", e.GiveUpAfter)
	check(e.Attempts >= 1 && e.Attempts <= 100, "attempts: %d: want 1 to 100", e.Attempts)
	check(e.Timeout >= time.Second && e.Timeout <= mostTimeout, "timeout: %s: want 1s to %s", e.Timeout, mostTimeout)
	return faults
}

func kinds() []subject.AlertKind {
	return []subject.AlertKind{subject.AlertViolation, subject.AlertFinding, subject.AlertDrift}
}

// rank orders severities: 0 for none.
func rank(s schema.Severity) int {
	return 1 + slices.Index([]schema.Severity{schema.SeverityMedium, schema.SeverityHigh, schema.SeverityCritical}, s)
}

// wants reports whether the endpoint gets an alert. An alert without a severity, such as each
// alert of drift, is left out only by its type.
func (e *Endpoint) wants(a *alert) bool {
	if len(e.Types) > 0 && !slices.Contains(e.Types, a.kind) {
		return false
	}
	return a.severity == "" || rank(a.severity) >= rank(e.Severity)
}
