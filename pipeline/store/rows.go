package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Owned is embedded in every row. The store fills it in.
type Owned struct {
	Tenant string `ch:"tenant"`
}

func (o *Owned) own(tenant string) { o.Tenant = tenant }

// row is a pointer to a struct of type T whose members name their columns.
type row[T any] interface {
	*T
	own(tenant string)
}

// insertRows stores rows of a table whose key identifies duplicates. After any error the same
// rows may be sent again. It fills in their tenant.
func insertRows[T any, R row[T]](ctx context.Context, s *Store, table string, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	if err := sendRows[T, R](ctx, s, table, rows); err != nil {
		return fmt.Errorf("insert %d rows into %s: %w", len(rows), table, err)
	}
	return nil
}

func sendRows[T any, R row[T]](ctx context.Context, s *Store, table string, rows []T) error {
	var a attempt
	ctx, cancel := s.insertContext(ctx, table, "", &a)
	defer cancel()
	batch, err := s.conn.PrepareBatch(ctx, insertStatement[T](table))
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }() // after Send there is nothing to close
	for i := range rows {
		R(&rows[i]).own(s.cfg.Tenant)
		if err := batch.AppendStruct(&rows[i]); err != nil {
			return err
		}
	}
	return a.send(batch)
}

// insertStatement returns an INSERT with the columns that the members of T name.
func insertStatement[T any](table string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columnsOf[T](), ", ") + ")"
}

func columnsOf[T any]() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name := f.Tag.Get("ch"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// membersOf returns pointers to the members of row that name the columns.
func membersOf[T any](row *T, columns []string) ([]any, error) {
	value, members := reflect.ValueOf(row).Elem(), make([]any, len(columns))
	for _, f := range reflect.VisibleFields(value.Type()) {
		if i := slices.Index(columns, f.Tag.Get("ch")); i >= 0 {
			members[i] = value.FieldByIndex(f.Index).Addr().Interface()
		}
	}
	if i := slices.Index(members, nil); i >= 0 {
		return nil, fmt.Errorf("no member of %T is column %s", row, columns[i])
	}
	return members, nil
}

// readRows runs a query that selects the columns of T.
func readRows[T any](ctx context.Context, s *Store, query string, args ...any) ([]T, error) {
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	var rows []T
	args = append(args, clickhouse.Named("tenant", s.cfg.Tenant))
	if err := s.conn.Select(ctx, &rows, query, args...); err != nil {
		return nil, err
	}
	return rows, nil
}
