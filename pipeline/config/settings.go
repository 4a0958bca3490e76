package config

import (
	"encoding"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// envPrefix is the prefix of the name of every variable that Plumbline reads.
const envPrefix = "PLUMBLINE_"

// hidden replaces a secret in output.
const hidden = "********"

// settings are a command's flags by YAML key, in order of declaration.
type settings struct {
	section string            // of the file that this command reads, in addition to its top
	origin  map[string]string // where the file set a setting, by YAML key

	// Of a command that runs the services itself, otherwise nil. They are called when they are needed,
	// because to describe all services takes longer than many commands.
	others    func() map[string][]string // the keys of the services, by section
	elsewhere func() []string            // the variables of the services and of other commands

	all   []*kong.Flag // includes flags that are not settings, such as --help
	order []*kong.Flag
	byKey map[string]*kong.Flag // also by earlier names
}

// newSettings gives each flag its variable, and takes the current value of its field as its
// default.
func newSettings(section string, flags []*kong.Flag) *settings {
	s := &settings{section: section, origin: map[string]string{}, all: flags, byKey: map[string]*kong.Flag{}}
	for _, flag := range flags {
		if flag.Name == "help" || len(flag.Envs) > 0 {
			continue
		}
		setVariable(flag)
		s.add(flag)
		setDefault(flag, textOf(flag))
	}
	return s
}

func (s *settings) add(flag *kong.Flag) {
	s.order = append(s.order, flag)
	for _, name := range names(flag) {
		s.byKey[name] = flag
	}
}

// names returns the YAML key of a flag, and its earlier keys.
func names(flag *kong.Flag) []string {
	keys := []string{yamlKey(flag)}
	for _, earlier := range flag.Aliases {
		keys = append(keys, strings.ReplaceAll(earlier, "-", "_"))
	}
	return keys
}

// sharedKeys returns the keys that stand at the top of a file for several services, some of which
// may not have them.
var sharedKeys = sync.OnceValue(func() map[string]bool {
	var shared struct {
		Common     `embed:""`
		ClickHouse ClickHouse `embed:"" prefix:"clickhouse-"`
		Cards      Cards      `embed:"" prefix:"card-"`
	}
	keys := map[string]bool{}
	for _, key := range Keys(&shared) {
		keys[key] = true
	}
	return keys
})

// Keys returns the YAML keys of the settings of a configuration, a pointer to a struct.
func Keys(cfg any) (keys []string) {
	parser, err := kong.New(cfg)
	if err != nil {
		panic(err) // a fault in the declaration of the settings, on every run
	}
	for _, flag := range parser.Model.Flags {
		if flag.Name != "help" {
			keys = append(keys, names(flag)...)
		}
	}
	return keys
}

// Variables gives every flag of a command line, other than --help and --version, the variable from
// which a service takes the same setting. The current value of its field is its default.
func Variables() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			if flag, ok := node.(*kong.Flag); ok && flag.Name != "help" && flag.Name != "version" {
				setVariable(flag)
				if !flag.HasDefault && !flag.Target.IsZero() {
					setDefault(flag, textOf(flag))
				}
			}
			return next(nil)
		})
	})
}

func setVariable(flag *kong.Flag) {
	var variables []string
	for _, key := range names(flag) {
		variables = append(variables, envPrefix+strings.ToUpper(key))
	}
	flag.Envs, flag.Tag.Envs = variables, variables
}

func yamlKey(flag *kong.Flag) string { return strings.ReplaceAll(flag.Name, "-", "_") }

func setDefault(flag *kong.Flag, text string) {
	flag.HasDefault = text != ""
	flag.Default = text
	if text != "" {
		flag.PlaceHolder = redact(flag, text)
	}
}

// joined formats a list in the form that kong reads for a flag.
func joined(flag *kong.Flag, items []string) string {
	separator := ','
	if flag.Tag.Sep > 0 {
		separator = flag.Tag.Sep
	}
	return kong.JoinEscaped(items, separator)
}

// textOf formats a setting's value in the form that kong reads.
func textOf(flag *kong.Flag) string {
	switch value := flag.Target.Interface().(type) {
	case []string:
		return joined(flag, value)
	case encoding.TextMarshaler:
		text, err := value.MarshalText()
		if err != nil {
			return ""
		}
		return string(text)
	default:
		if flag.Target.IsZero() {
			return ""
		}
		return fmt.Sprint(value)
	}
}

// print writes the effective settings as YAML, each with its origin as a comment.
func (s *settings) print(out io.Writer, args []string) error {
	for _, flag := range s.order {
		value := yamlScalar(flag.Target, redact(flag, textOf(flag)))
		if _, err := fmt.Fprintf(out, "%s: %s  # %s\n", yamlKey(flag), value, s.originOf(flag, args)); err != nil {
			return fmt.Errorf("print the settings: %w", err)
		}
	}
	return nil
}

// originOf returns where a setting's value is from.
func (s *settings) originOf(flag *kong.Flag, args []string) string {
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		if given, _ := s.flagOf(name); isFlag && given == flag {
			return "flag --" + name
		}
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return "environment " + name
		}
	}
	if origin := s.origin[yamlKey(flag)]; origin != "" {
		return origin
	}
	return "default"
}

func yamlScalar(v reflect.Value, text string) string {
	if text == "" && !v.IsZero() || v.Kind() == reflect.String || v.Kind() == reflect.Slice {
		return fmt.Sprintf("%q", text)
	}
	if text == "" {
		return fmt.Sprint(v.Interface())
	}
	return text
}

// redact hides the secret parts of a setting: all of it with the tag secret:"", the passwords in
// URLs with secret:"userinfo".
func redact(flag *kong.Flag, text string) string {
	switch {
	case !flag.Tag.Has("secret") || text == "":
		return text
	case flag.Tag.Get("secret") != "userinfo":
		return hidden
	}
	return RedactURLs(text)
}

// RedactURLs hides the passwords in addresses. Several addresses are separated by commas.
func RedactURLs(text string) string {
	addresses := strings.Split(text, ",")
	for i, address := range addresses {
		addresses[i] = redactURL(address)
	}
	return strings.Join(addresses, ",")
}

// redactURL hides the password of an address. Without a password it hides the user too, because a
// broker treats a lone user as a token.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	if password, ok := u.User.Password(); ok && password != "" {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	} else if u.User != nil && u.Scheme != "clickhouse" {
		u.User = url.User("xxxxx")
	}
	query := u.Query()
	if query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.String()
}
