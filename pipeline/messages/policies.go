package messages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/reload"
)

// Policies define what each agent accepts from whom. They come from a file that is read again
// when it changes. Any goroutine may use them.
type Policies struct {
	file *reload.File[*table] // nil: no file, and the mode of every agent is off
}

// table is the content of a policies file.
type table struct {
	agents   map[string]*message.Policy
	prefixes []string // of patterns "prefix*", longest first
}

// off is the policy of an agent without an entry in the file.
var off = message.DefaultPolicy()

// OpenPolicies reads a policies file. An empty path means no policies. Without a token file
// senders are anonymous. Mode enforce is then a fault of the file, also when it is read again,
// because it would trust messages that anyone can sign.
func OpenPolicies(path string, anonymous bool, log *slog.Logger) (*Policies, error) {
	if path == "" {
		return new(Policies), nil
	}
	read := func(path string) (*table, error) { return readPolicies(path, anonymous) }
	file, err := reload.Open(path, read, func(t *table, err error) {
		if err != nil {
			log.Error("message policies cannot be used; the last valid ones stay in effect", "error", err)
			return
		}
		log.Info("message policies reloaded", "agents", len(t.agents))
	})
	if err != nil {
		return nil, err
	}
	return &Policies{file: file}, nil
}

// Given reports whether there is a file.
func (p *Policies) Given() bool { return p.file != nil }

// Of returns the policy of an agent: the one under its id, else the one under the longest
// matching prefix, else off. The caller must not change it.
func (p *Policies) Of(agentID string, now time.Time) *message.Policy {
	if p.file == nil {
		return &off
	}
	t := p.file.Current(now)
	if policy := t.agents[agentID]; policy != nil {
		return policy
	}
	for _, prefix := range t.prefixes {
		if strings.HasPrefix(agentID, prefix) {
			return t.agents[prefix+"*"]
		}
	}
	return &off
}

// policiesFile is the structure of the file.
type policiesFile struct {
	Agents map[string]policyEntry `yaml:"agents"`
}

// policyEntry is the policy of an agent, or of all agents whose ids have a prefix. An omitted
// list means the RFC's default. An empty list permits nothing.
type policyEntry struct {
	Mode    message.Mode        `yaml:"mode"`
	Human   *[]string           `yaml:"human"`
	Agents  *[]string           `yaml:"agents"`
	Systems map[string][]string `yaml:"systems"` // by the name of the schedule's token
	Tools   map[string]string   `yaml:"tools"`   // the class of each tool
}

// readPolicies reads a file and reports every fault in it. It refuses a file that others can
// write, because an agent could extend its own policy. With anonymous senders, mode enforce is a
// fault.
func readPolicies(path string, anonymous bool) (*table, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("message policies: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return nil, fmt.Errorf("message policies %s: mode %#o lets others change it: chmod go-w %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("message policies: %w", err)
	}
	t, err := parsePolicies(text)
	if err != nil {
		return nil, fmt.Errorf("message policies %s: %w", path, err)
	}
	var enforced []string
	for _, pattern := range slices.Sorted(maps.Keys(t.agents)) {
		if anonymous && t.agents[pattern].Mode == message.Enforce {
			enforced = append(enforced, "agents."+pattern)
		}
	}
	if len(enforced) > 0 {
		return nil, fmt.Errorf("message policies %s: %s: mode enforce needs a token file, or any process on this machine could sign messages: "+
			"set one (token_file, --token-file), or use mode warn", path, strings.Join(enforced, ", "))
	}
	return t, nil
}

func parsePolicies(text []byte) (*table, error) {
	var file policiesFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document")
	}
	t := &table{agents: map[string]*message.Policy{}}
	var faults []error
	for _, pattern := range slices.Sorted(maps.Keys(file.Agents)) {
		entry := file.Agents[pattern]
		policy, err := entry.policy()
		if err != nil {
			faults = append(faults, fmt.Errorf("agents.%s: %w", pattern, err))
		}
		t.agents[pattern] = policy
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			t.prefixes = append(t.prefixes, prefix)
		}
	}
	slices.SortFunc(t.prefixes, func(a, b string) int { return len(b) - len(a) })
	return t, errors.Join(faults...)
}

func (e *policyEntry) policy() (*message.Policy, error) {
	p := message.DefaultPolicy()
	p.Systems, p.Tools = map[string]message.Intents{}, map[string]message.Intents{}
	var faults []error
	classes := func(key string, names []string) message.Intents {
		set, err := message.ParseIntents(names)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
		return set
	}
	if e.Mode != "" {
		p.Mode = e.Mode
	}
	if e.Human != nil {
		p.Human = classes("human", *e.Human)
	}
	if e.Agents != nil {
		p.Agents = classes("agents", *e.Agents)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Systems)) {
		p.Systems[name] = classes("systems."+name, e.Systems[name])
	}
	for _, tool := range slices.Sorted(maps.Keys(e.Tools)) {
		p.Tools[tool] = classes("tools."+tool, []string{e.Tools[tool]})
	}
	if len(faults) == 0 {
		faults = append(faults, p.Validate())
	}
	return &p, errors.Join(faults...)
}
