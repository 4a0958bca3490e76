package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// shown returns a value of a ClickHouse type in the form that all outputs print: dates
// without a time, instants in UTC, numbers of an array as numbers, digests and other
// binary text as hexadecimal digits. It needs the ClickHouse type, because the Go value is
// ambiguous: the driver returns a date as a time, and an array of bytes as one text.
func shown(kind string, v any) any {
	if v = plain(v); v == nil {
		return nil
	}
	name, inner := typeParts(kind)
	switch {
	case name == "Nullable" || name == "LowCardinality":
		return shown(inner[0], v)
	case name == "SimpleAggregateFunction":
		return shown(inner[len(inner)-1], v)
	case name == "Array":
		return shownItems(v, func(int) string { return inner[0] })
	case name == "Nested":
		return shownItems(v, func(int) string { return "Tuple(" + strings.Join(inner, ", ") + ")" })
	case name == "Map":
		return shownMap(v, func(string) string { return inner[1] }, inner[0])
	case name == "Tuple":
		return shownTuple(inner, v)
	case name == "JSON":
		if members, ok := document(v); ok {
			return shownMap(members, func(string) string { return "JSON" }, "String")
		}
	}
	return shownValue(name, v)
}

// document returns the members of a value of type JSON, or of an object inside one.
func document(v any) (map[string]any, bool) {
	if members, ok := v.(map[string]any); ok {
		return members, true
	}
	p := reflect.New(reflect.TypeOf(v)) // the methods of the driver's type are on the pointer
	p.Elem().Set(reflect.ValueOf(v))
	whole, ok := p.Interface().(interface{ NestedMap() map[string]any })
	if !ok {
		return nil, false
	}
	return whole.NestedMap(), true
}

// shownValue converts a value that contains no others.
func shownValue(kind string, v any) any {
	switch v := v.(type) {
	case time.Time:
		if kind == "Date" || kind == "Date32" {
			return v.Format(time.DateOnly)
		}
		return v.UTC()
	case time.Duration: // of type Time or Time64
		return clockTime(v)
	case string:
		if kind == "FixedString" || !utf8.ValidString(v) {
			return hex.EncodeToString([]byte(v))
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) { // JSON has no such number
			return fmt.Sprint(v)
		}
	case float32:
		if _, text := shownValue(kind, float64(v)).(string); text {
			return fmt.Sprint(v)
		}
	case interface { // of type Dynamic or Variant
		Any() any
		Type() string
	}:
		return shown(v.Type(), v.Any())
	}
	return v
}

// clockTime formats a time of day, or a duration in the same form: 12:00:00.5.
func clockTime(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	return fmt.Sprintf("%s%02d%s", sign, d/time.Hour, time.Time{}.Add(d%time.Hour).Format(":04:05.999999999"))
}

// shownItems converts the items of a list, each with the type that kindOf returns.
func shownItems(v any, kindOf func(i int) string) any {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		return v
	}
	items := make([]any, list.Len())
	for i := range items {
		items[i] = shown(kindOf(i), list.Index(i).Interface())
	}
	return items
}

// shownMap converts the values of a map; its keys become text.
func shownMap(v any, kindOf func(key string) string, keyKind string) any {
	m := reflect.ValueOf(v)
	if m.Kind() != reflect.Map {
		return v
	}
	values := make(map[string]any, m.Len())
	for each := m.MapRange(); each.Next(); {
		key := csvCell(shown(keyKind, each.Key().Interface()))
		values[key] = shown(kindOf(key), each.Value().Interface())
	}
	return values
}

// shownTuple converts a tuple: to a list, or to a map by name if its members have names.
func shownTuple(members []string, v any) any {
	kinds := map[string]string{}
	ordered := make([]string, len(members))
	for i, member := range members {
		ordered[i] = member
		if name, kind, named := cutName(member); named {
			ordered[i], kinds[name] = kind, kind
		}
	}
	if reflect.ValueOf(v).Kind() == reflect.Map {
		return shownMap(v, func(key string) string { return kinds[key] }, "String")
	}
	return shownItems(v, func(i int) string {
		if i >= len(ordered) {
			return ""
		}
		return ordered[i]
	})
}

// cutName splits a member of a tuple into its name and its type.
func cutName(member string) (name, kind string, named bool) {
	if quoted, found := strings.CutPrefix(member, "`"); found {
		name, kind, named = strings.Cut(quoted, "` ")
		return name, kind, named
	}
	name, kind, named = strings.Cut(member, " ")
	return name, kind, named && !strings.ContainsAny(name, "('")
}

// typeParts splits a type, such as Map(String, Array(UInt8)), into its name and its
// parameters in parentheses.
func typeParts(kind string) (name string, inner []string) {
	name, rest, found := strings.Cut(kind, "(")
	if !found {
		return name, nil
	}
	rest = strings.TrimSuffix(rest, ")")
	depth, start, quote := 0, 0, byte(0)
	for i := range len(rest) {
		switch c := rest[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			inner = append(inner, strings.TrimSpace(rest[start:i]))
			start = i + 1
		}
	}
	return name, append(inner, strings.TrimSpace(rest[start:]))
}
