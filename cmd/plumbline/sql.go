package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/plumbline/plumbline/pipeline/store"
)

type sqlCommand struct {
	readerFlags `embed:""`
	Query       string `arg:"" optional:"" help:"The query; standard input where it is missing."`
	Format      string `enum:"table,json,csv" default:"table" help:"Form of the result; json is one object a row (${enum})."`
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
		return usagef("the query says %s, which only ClickHouse's own client follows: leave it out, and choose the form with --format table, json or csv", clause)
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
	if err := t.row(header...); err != nil {
		return err
	}
	for row, err := range result.Rows {
		if err != nil {
			return err
		}
		if err := t.row(row...); err != nil {
			return err
		}
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
