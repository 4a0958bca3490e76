package config

import (
	"encoding"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix is the prefix of the name of every variable that Plumbline reads.
const envPrefix = "PLUMBLINE_"

// hidden replaces a secret in output.
const hidden = "********"

// settings are a command's flags by YAML key, in order of declaration.
type settings struct {
	all   []*kong.Flag // includes flags that are not settings, such as --help
	order []*kong.Flag
	byKey map[string]*kong.Flag
}

// newSettings gives each flag its variable, and takes the current value of its field as its
// default.
func newSettings(flags []*kong.Flag) *settings {
	s := &settings{all: flags, byKey: map[string]*kong.Flag{}}
	for _, flag := range flags {
		if flag.Name == "help" || len(flag.Envs) > 0 {
			continue
		}
		setVariable(flag)
		s.order = append(s.order, flag)
		s.byKey[yamlKey(flag)] = flag
		setDefault(flag, textOf(flag))
	}
	return s
}

// Variables gives every flag of a command line the variable from which a service takes the same
// setting. The current value of its field is its default.
func Variables() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			if flag, ok := node.(*kong.Flag); ok && flag.Name != "help" {
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
	name := envPrefix + strings.ToUpper(yamlKey(flag))
	flag.Envs, flag.Tag.Envs = []string{name}, []string{name}
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

// print writes the effective settings as YAML.
func (s *settings) print(out io.Writer) error {
	for _, flag := range s.order {
		if _, err := fmt.Fprintf(out, "%s: %s\n", yamlKey(flag), yamlScalar(flag.Target, redact(flag, textOf(flag)))); err != nil {
			return fmt.Errorf("print the settings: %w", err)
		}
	}
	return nil
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
