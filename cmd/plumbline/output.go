package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline/plumbline/schema"
)

// writeJSON writes v as one line for every reader: some programs treat U+0085 as the end of
// a line, and some terminals treat other controls from U+007F to U+009F as commands.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := escapeControls.WriteString(w, text.String())
	return err
}

// escapeControls escapes the controls that the encoder leaves unchanged. They
// occur only within texts.
var escapeControls = func() *strings.Replacer {
	var pairs []string
	for r := rune(0x7f); r <= 0x9f; r++ {
		pairs = append(pairs, string(r), fmt.Sprintf(`\u%04x`, r))
	}
	return strings.NewReplacer(pairs...)
}()

// table writes rows as aligned columns. The content of a cell is not trusted:
// it cannot control the terminal.
type table struct {
	columns *tabwriter.Writer
	err     error // the first one of row
}

func newTable(w io.Writer) *table { return &table{columns: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row writes one row of cells. Flush returns its error.
func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = cell(c)
	}
	_, err := io.WriteString(t.columns, strings.Join(texts, "\t")+"\n")
	t.err = errors.Join(t.err, err)
}

// Flush writes the rows with their columns aligned.
func (t *table) Flush() error {
	if t.err != nil {
		return t.err
	}
	return t.columns.Flush()
}

// writeRows writes a table of names and values. It leaves out rows whose value is an empty text.
func writeRows(w io.Writer, rows [][]any) error {
	t := newTable(w)
	for _, row := range rows {
		if len(row) < 2 || row[1] != "" {
			t.row(row...)
		}
	}
	return t.Flush()
}

// writeEach writes values as JSON, each on a line of its own.
func writeEach[T any](w io.Writer, values []T) error {
	for i := range values {
		if err := writeJSON(w, &values[i]); err != nil {
			return err
		}
	}
	return nil
}

// lineWriter writes lines of text and keeps the first error.
type lineWriter struct {
	w   io.Writer
	err error
}

func (l *lineWriter) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format, args...)
	}
}

// result writes a line for each fault of a record, or one line if there is none.
func (l *lineWriter) result(file string, number int, status, id string, faults []schema.Fault) {
	what := fmt.Sprintf("%s:%d: %s", file, number, status)
	if id != "" {
		what += " " + printable(id)
	}
	if len(faults) == 0 {
		l.printf("%s\n", what)
	}
	for _, fault := range faults {
		l.printf("%s: %s\n", what, placed(fault.Pointer, fault.Message))
	}
}

// placed returns a text with the JSON pointer that it is about.
func placed(pointer, text string) string {
	if pointer != "" {
		text = pointer + ": " + text
	}
	return printable(text)
}

// cell formats a value for people.
func cell(v any) string {
	switch v := plain(v).(type) {
	case nil:
		return "-"
	case string:
		return printable(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case fmt.Stringer:
		return printable(v.String())
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		var b bytes.Buffer
		if err := writeJSON(&b, v); err != nil { // JSON has no such value: an infinite number in a list
			return printable(fmt.Sprint(v))
		}
		return printable(strings.TrimSuffix(b.String(), "\n"))
	}
}

// plain dereferences the pointer of a nullable value.
func plain(v any) any {
	for p := reflect.ValueOf(v); p.Kind() == reflect.Pointer; p = reflect.ValueOf(v) {
		if p.IsNil() {
			return nil
		}
		if _, itself := v.(*big.Int); itself { // a number too large for Go's integer types
			return v
		}
		v = p.Elem().Interface()
	}
	return v
}

// printable quotes text that has unprintable characters or line breaks.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// errorText returns the text of an error, which may quote text of others: it cannot control the
// terminal.
func errorText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
