package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
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
func insertRows[T any, R row[T]](ctx context.Context, w Writer, table string, rows []T) (err error) {
	if len(rows) == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("insert %d rows into %s: %w", len(rows), table, err)
		}
	}()
	statement := "INSERT INTO " + table + " (" + strings.Join(columnsOf[T](), ", ") + ")"
	batch, err := w.db.Insert(ctx, table, len(rows), "", statement)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }() // after Send there is nothing to close
	for i := range rows {
		R(&rows[i]).own(w.tenant)
		if err := batch.AppendStruct(&rows[i]); err != nil {
			return err
		}
	}
	return batch.Send()
}

// columnsOf returns the columns that the members of T name.
func columnsOf[T any]() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name := f.Tag.Get("ch"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// eventHour returns a time as whole hours since 1970. The time must lie within
// schema.EarliestTime..LatestTime. eventHour is the first column of the sort keys: rows of
// neighbouring hours are stored together, so reading through FINAL compares neighbours only.
func eventHour(t time.Time) uint32 { return uint32(t.Unix() / 3600) }

// nanoseconds returns t in nanoseconds since 1970. A zero time is 0.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// RetainUntil is when retention may remove a row, in whole seconds up to 2106. The zero value
// means never.
type RetainUntil time.Time

// forever is the last second that ClickHouse's DateTime can represent.
const forever = 1<<32 - 1

// retention returns when a row may be deleted. A zero time means never.
func retention(t time.Time) uint32 {
	if t.IsZero() || t.Unix() >= forever {
		return forever
	}
	return uint32(max(t.Unix(), 0))
}

func (r RetainUntil) Value() (driver.Value, error) {
	return time.Unix(int64(retention(time.Time(r))), 0).UTC(), nil
}

func (r *RetainUntil) Scan(value any) error {
	t, ok := value.(time.Time)
	if !ok {
		return fmt.Errorf("read retain_until: %T is not a time", value)
	}
	if t.Unix() >= forever {
		t = time.Time{}
	}
	*r = RetainUntil(t)
	return nil
}

func hexadecimal(digests []schema.Digest) []string {
	texts := make([]string, len(digests))
	for i, d := range digests {
		texts[i] = d.String()
	}
	return texts
}
