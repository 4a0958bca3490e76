package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"
)

// entry is one setting of a YAML file.
type entry struct {
	key  string   // groups joined by "_": nats: {url: …} is nats_url
	text string   // of a plain value, as kong reads it
	list []string // of a list
	line int
}

// readFile makes what the YAML file says the settings' defaults. An empty path
// is no file. All faults are reported, each with file, line and key.
func (s *settings) readFile(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer func() { _ = file.Close() }()
	entries, err := readEntries(file)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	var faults []error
	seen := map[string]int{}
	for _, e := range entries {
		if err := s.apply(e, seen); err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %s: %w", path, e.line, e.key, err))
		}
	}
	return errors.Join(faults...)
}

func (s *settings) apply(e entry, seen map[string]int) error {
	flag, known := s.byKey[e.key]
	if !known {
		return fmt.Errorf("unknown key%s", s.suggest(e.key))
	}
	if line, twice := seen[e.key]; twice {
		return fmt.Errorf("already set on line %d", line)
	}
	seen[e.key] = e.line
	text := e.text
	if e.list != nil {
		text = joined(flag, e.list)
	}
	trial := reflect.New(flag.Target.Type()).Elem()
	token := kong.Token{Type: kong.FlagValueToken, Value: text}
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.ScanFromTokens(token)}, trial); err != nil {
		return err
	}
	setDefault(flag, text)
	return nil
}

// readEntries reads one YAML document of nested mappings.
func readEntries(r io.Reader) ([]entry, error) {
	decoder := yaml.NewDecoder(r)
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return flatten(nil, "", document.Content[0])
}

// flatten appends the settings below a node whose key is prefix.
func flatten(entries []entry, prefix string, node *yaml.Node) ([]entry, error) {
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want key: value", node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		if value.Kind == yaml.MappingNode {
			var err error
			if entries, err = flatten(entries, key+"_", value); err != nil {
				return nil, err
			}
			continue
		}
		e := entry{key: key, line: name.Line}
		if err := e.read(value); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", value.Line, key, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// read takes a scalar or a list of scalars.
func (e *entry) read(node *yaml.Node) error {
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Tag != "!!null" {
			e.text = node.Value
		}
	case yaml.SequenceNode:
		e.list = []string{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return errors.New("want a list of plain values")
			}
			e.list = append(e.list, item.Value)
		}
	default:
		return errors.New("want a value or a list of values")
	}
	return nil
}

// checkEnvironment refuses variables that nearly name a setting. Others that
// begin with PLUMBLINE_ may be another command's, or the platform's.
func (s *settings) checkEnvironment(environ []string) error {
	var faults []error
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		key, ours := strings.CutPrefix(name, envPrefix)
		if !ours || s.byKey[strings.ToLower(key)] != nil {
			continue
		}
		if near := s.nearest(strings.ToLower(key)); near != "" {
			faults = append(faults, fmt.Errorf("environment: %s: unknown variable, did you mean %s%s?", name, envPrefix, strings.ToUpper(near)))
		}
	}
	return errors.Join(faults...)
}
