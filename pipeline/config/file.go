package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"
)

// entry is one setting of a YAML file.
type entry struct {
	section string   // "", or the service that the setting is for
	key     string   // groups joined by "_": nats: {url: …} is nats_url
	text    string   // a plain value in kong's form
	list    []string // of a list
	empty   bool     // nothing stands behind the colon
	line    int
	err     error // the fault of its form
}

// readFile makes the values of the YAML file the defaults of the settings. An empty path means no
// file. It returns all faults, each with file, line and key.
//
// Settings at the top are for every service. Those in a section (exporter: {seal_idle: 1h}) are for one
// service, and override those at the top.
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
	slices.SortStableFunc(entries, func(a, b entry) int { return min(len(a.section), 1) - min(len(b.section), 1) }) // the top first
	seen := map[string]place{}
	for _, e := range entries {
		if err := s.apply(path, e, seen); err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %v", path, e.line, err))
		}
	}
	return faults
}

// place is where a file sets a setting.
type place struct {
	section string
	line    int
	text    string
}

func (s *settings) apply(path string, e entry, seen map[string]place) error {
	if e.err != nil {
		return e.err
	}
	if e.empty && s.isGroup(e) {
		return nil // everything below it is commented out
	}
	flag, err := s.find(e)
	if flag == nil {
		return err
	}
	text := e.text
	switch {
	case e.list != nil && !flag.IsSlice():
		return fmt.Errorf("%s: want one value, found a list", e.key)
	case e.list != nil:
		text = joined(flag, e.list)
	}
	key := yamlKey(flag)
	if at, twice := seen[e.section+"."+key]; twice {
		return fmt.Errorf("%s: already set on line %d", e.key, at.line)
	}
	seen[e.section+"."+key] = place{e.section, e.line, text}
	if e.section != "" { // the sections of a command that runs the services itself
		if at, twice := seen[key]; twice && at.text != text {
			return fmt.Errorf("%s: %s: section %s has another value on line %d, and %s has one such setting: set it once", e.section, e.key, at.section, at.line, s.section)
		}
		seen[key] = place{e.section, e.line, text}
	}
	if err := try(flag, text); err != nil {
		return fmt.Errorf("%s: %w", e.key, err)
	}
	setDefault(flag, text)
	s.origin[key] = fmt.Sprintf("file %s:%d", path, e.line)
	return nil
}

// isGroup reports whether settings may stand below a key, as url below nats.
func (s *settings) isGroup(e entry) bool {
	below := func(key string) bool { return strings.HasPrefix(key, e.key+"_") }
	for _, flag := range s.order {
		if yamlKey(flag) == e.key {
			return false
		}
	}
	for key := range s.byKey {
		if below(key) {
			return true
		}
	}
	for key := range sharedKeys() {
		if below(key) {
			return true
		}
	}
	return s.others != nil && slices.ContainsFunc(s.others()[e.section], below)
}

// find returns the setting of an entry: nil without an error if the entry is for another service.
func (s *settings) find(e entry) (*kong.Flag, error) {
	flag, known := s.byKey[e.key]
	switch {
	case e.section != "" && e.section != s.section && s.others == nil:
		return nil, nil // that service checks it
	case e.section != "" && e.section != s.section:
		return s.findOfStage(e)
	case !known && s.others != nil && sharedKeys()[e.key]:
		return nil, fmt.Errorf("%s: %s cannot set this", e.key, s.section)
	case !known && e.section == "" && sharedKeys()[e.key]:
		return nil, nil // of other services
	case !known:
		return nil, fmt.Errorf("%s: unknown key%s", e.key, s.suggest(e.key))
	}
	return flag, nil
}

// findOfStage returns the setting of a program that runs the services itself: it has the service's name,
// or the service's name comes before it (drift: {mode: …} is drift_mode).
func (s *settings) findOfStage(e entry) (*kong.Flag, error) {
	keys := s.others()[e.section]
	where := e.section + ": " + e.key
	if !slices.Contains(keys, e.key) {
		near := nearestOf(keys, e.key)
		if near == "" {
			return nil, fmt.Errorf("%s: unknown key: %s --print-config lists them", where, e.section)
		}
		return nil, fmt.Errorf("%s: unknown key, did you mean %s?", where, near)
	}
	switch {
	case sharedKeys()[e.key] && s.byKey[e.key] == nil:
		return nil, fmt.Errorf("%s: %s cannot set this", where, s.section)
	case sharedKeys()[e.key]:
		return nil, fmt.Errorf("%s: %s has one such setting for all services: set it at the top of the file", where, s.section)
	}
	for _, key := range []string{e.section + "_" + e.key, e.key} {
		if flag := s.byKey[key]; flag != nil {
			return flag, nil
		}
	}
	return nil, fmt.Errorf("%s: %s cannot set this: it runs the service with the default", where, s.section)
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
	var entries []entry
	if top := document.Content[0]; !isNull(top) {
		entries = flatten(nil, "", "", top)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return entries, errors.New("more than one document")
	}
	return entries, nil
}

// sections are the names of the sections of a file.
var sections = []string{"up", "ingest", "verifier", "drift", "exporter"}

// flatten appends the settings below a node whose key is prefix.
func flatten(entries []entry, section, prefix string, node *yaml.Node) []entry {
	if node.Kind != yaml.MappingNode {
		return append(entries, entry{line: node.Line, err: errors.New("want key: value")})
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		if section == "" && slices.Contains(sections, key) {
			if !isNull(value) { // an empty section
				entries = flatten(entries, key, "", value)
			}
			continue
		}
		if value.Kind == yaml.MappingNode {
			entries = flatten(entries, section, key+"_", value)
			continue
		}
		e := entry{section: section, key: key, line: name.Line, empty: isNull(value)}
		if err := e.read(value); err != nil {
			e.err = fmt.Errorf("%s: %w", key, err)
		}
		entries = append(entries, e)
	}
	return entries
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// read reads a scalar or a list of scalars.
func (e *entry) read(node *yaml.Node) error {
	switch node.Kind {
	case yaml.ScalarNode:
		if !isNull(node) {
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
