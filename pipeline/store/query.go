package store

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Column is one column of a result: its name and ClickHouse type.
type Column struct {
	Name string
	Type string
}

// Result is the answer to an operator's query. The caller must range over Rows, exactly once.
type Result struct {
	Columns []Column
	Rows    iter.Seq2[[]any, error] // the values of one row; ends after the first error
}

// Query runs an operator's own statement as the user of the DSN. Only the privileges of that user
// limit it, so open the store with a reader's DSN. Tables are read through FINAL, which hides
// duplicates.
func (s *Store) Query(ctx context.Context, statement string) (*Result, error) {
	ctx, cancel := s.readContext(ctx)
	settings := s.pinned(readPins)
	settings["final"] = 1
	rows, err := s.conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), statement)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("query: %w", err)
	}
	result := &Result{Rows: func(yield func([]any, error) bool) {
		defer cancel()
		eachResult(rows, yield)
	}}
	for _, t := range rows.ColumnTypes() {
		result.Columns = append(result.Columns, Column{Name: t.Name(), Type: t.DatabaseTypeName()})
	}
	return result, nil
}

func eachResult(rows driver.Rows, yield func([]any, error) bool) {
	defer rows.Close()
	types := rows.ColumnTypes()
	for rows.Next() {
		pointers, values := make([]any, len(types)), make([]any, len(types))
		for i, t := range types {
			pointers[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(pointers...); err != nil {
			yield(nil, fmt.Errorf("query: %w", err))
			return
		}
		for i, p := range pointers {
			values[i] = reflect.ValueOf(p).Elem().Interface()
		}
		if !yield(values, nil) {
			return
		}
	}
	if err := rows.Err(); err != nil {
		yield(nil, fmt.Errorf("query: %w", err))
	}
}
