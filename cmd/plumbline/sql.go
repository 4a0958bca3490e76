package main

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline/plumbline/pipeline/store"
)

type sqlCommand struct {
	readerFlags `embed:""`
	Query       string `arg:"" optional:"" help:"The query. Default: standard input."`
	Format      string `enum:"table,json,csv" default:"table" help:"Format of the result (${enum}); json: one object per row."`
	JSON        bool   `help:"The same as --format json."`
}

// Run runs the query with the reader's rights.
func (c *sqlCommand) Run(ctx context.Context, con *console) error {
	query := c.Query
	if query == "" {
		text, err := io.ReadAll(con.in)
		if err != nil {
			return fmt.Errorf("read the query: %w", err)
		}
		query = string(text)
	}
	if query = strings.TrimRight(strings.TrimSpace(query), "; "); query == "" {
		return fmt.Errorf("%w: give a query, as an argument or on standard input", errNothing)
	}
	if clause := outputClause(query); clause != "" {
		return usagef("the query has %s, which only ClickHouse's own client executes: remove it, and choose the format with --format table, json or csv", clause)
	}
	return c.read(ctx, func(s *store.Store) error {
		result, err := s.Query(ctx, query)
		if err != nil {
			return err
		}
		result.Rows = shownRows(result.Columns, result.Rows)
		return c.write(con.out, result)
	})
}

func (c *sqlCommand) write(w io.Writer, result *store.Result) error {
	switch {
	case c.JSON || c.Format == "json":
		return writeObjects(w, result)
	case c.Format == "csv":
		return writeCSV(w, result)
	default:
		return writeTable(w, result)
	}
}

// shownRows yields the rows with each value in the form that is printed.
func shownRows(columns []store.Column, rows iter.Seq2[[]any, error]) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range rows {
			for i := range row {
				row[i] = shown(columns[i].Type, row[i])
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func writeTable(w io.Writer, result *store.Result) error {
	t := newTable(w)
	header := make([]any, len(result.Columns))
	for i, column := range result.Columns {
		header[i] = column.Name
	}
	t.row(header...)
	for row, err := range result.Rows {
		if err != nil {
			return err
		}
		t.row(row...)
	}
	return t.Flush()
}

// writeCSV writes unmodified values, for programs.
func writeCSV(w io.Writer, result *store.Result) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(result.Columns))
	for i, column := range result.Columns {
		cells[i] = column.Name
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for row, err := range result.Rows {
		if err != nil {
			return err
		}
		for i, v := range row {
			cells[i] = csvCell(plain(v))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return cell(v)
	}
}

// writeObjects writes one JSON object per row, members in the order of the columns.
func writeObjects(w io.Writer, result *store.Result) error {
	for row, err := range result.Rows {
		if err != nil {
			return err
		}
		line := []byte{'{'}
		for i, v := range row {
			if i > 0 {
				line = append(line, ',')
			}
			name, err := json.Marshal(result.Columns[i].Name)
			if err != nil {
				return err
			}
			line = append(append(append(line, name...), ':'), jsonValue(v)...)
		}
		if _, err := w.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}

// jsonValue returns a value as JSON. A value that JSON cannot represent (an infinite number)
// becomes text.
func jsonValue(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(fmt.Sprintf("%q", fmt.Sprint(v)))
	}
	return text
}

// sqlToken matches the tokens of a query: comments, quoted texts and names, words, and
// single characters.
var sqlToken = regexp.MustCompile(`(?s)--[^\n]*|#[ !][^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|` + "`(?:[^`\\\\]|\\\\.)*`" + `|\w+|\S`)

// outputClause returns the clause of a query that determines the format or the destination of
// its result: FORMAT at its end, or INTO OUTFILE. Only ClickHouse's own client executes them.
func outputClause(query string) string {
	var tokens []string
	depth := 0
	for _, token := range sqlToken.FindAllString(query, -1) {
		switch {
		case strings.HasPrefix(token, "--"), strings.HasPrefix(token, "/*"), len(token) > 1 && token[0] == '#', token == ";":
		case token == "(" || token == "[":
			depth++
		case token == ")" || token == "]":
			depth--
			tokens = append(tokens, token)
		case depth == 0:
			tokens = append(tokens, token)
		}
	}
	for i := 1; i < len(tokens)-1; i++ {
		word, next := strings.ToUpper(tokens[i]), tokens[i+1]
		last := i+2 == len(tokens) || strings.EqualFold(tokens[i+2], "SETTINGS")
		if word == "FORMAT" && last && isWord(next) || word == "INTO" && strings.EqualFold(next, "OUTFILE") {
			return word + " " + next
		}
	}
	return ""
}

// isWord reports whether a token is a word, which can be the name of a format.
func isWord(token string) bool {
	return strings.IndexFunc(token, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
}

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
