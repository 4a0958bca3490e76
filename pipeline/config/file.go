package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"
)

// entry is one setting of a YAML file.
type entry struct {
	key  string   // groups joined by "_": nats: {url: …} is nats_url
	text string   // a plain value in kong's form
	list []string // of a list
	line int
	err  error // the fault of its form
}

// readFile makes the values of the YAML file the defaults of the settings. An empty path means no
// file. It returns all faults, each with file, line and key.
func (s *settings) readFile(path string) (faults []string) {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return []string{fmt.Sprintf("configuration: %v", err)}
	}
	defer func() { _ = file.Close() }()
	entries, err := readEntries(file)
	if err != nil {
		faults = append(faults, fmt.Sprintf("configuration %s: %v", path, err))
	}
	seen := map[string]int{}
	for _, e := range entries {
		if err := s.apply(e, seen); err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %v", path, e.line, err))
		}
	}
	return faults
}

func (s *settings) apply(e entry, seen map[string]int) error {
	if e.err != nil {
		return e.err
	}
	flag, known := s.byKey[e.key]
	if !known {
		return fmt.Errorf("%s: unknown key%s", e.key, s.suggest(e.key))
	}
	if line, twice := seen[e.key]; twice {
		return fmt.Errorf("%s: already set on line %d", e.key, line)
	}
	seen[e.key] = e.line
	text := e.text
	if e.list != nil {
		text = joined(flag, e.list)
	}
	if err := try(flag, text); err != nil {
		return fmt.Errorf("%s: %w", e.key, err)
	}
	setDefault(flag, text)
	return nil
}

// try returns an error if a setting does not accept a value.
func try(flag *kong.Flag, text string) error {
	trial := reflect.New(flag.Target.Type()).Elem()
	token := kong.Token{Type: kong.FlagValueToken, Value: text}
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.ScanFromTokens(token)}, trial)
}

// readEntries reads one YAML document of nested mappings. With an error it also returns what
// could be read.
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
	entries := flatten(nil, "", document.Content[0])
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return entries, errors.New("more than one document")
	}
	return entries, nil
}

// flatten appends the settings below a node whose key is prefix.
func flatten(entries []entry, prefix string, node *yaml.Node) []entry {
	if node.Kind != yaml.MappingNode {
		return append(entries, entry{line: node.Line, err: errors.New("want key: value")})
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		if value.Kind == yaml.MappingNode {
			entries = flatten(entries, key+"_", value)
			continue
		}
		e := entry{key: key, line: name.Line}
		if err := e.read(value); err != nil {
			e.err = fmt.Errorf("%s: %w", key, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// read reads a scalar or a list of scalars.
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
