package store

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// RetainUntil is when retention may remove a row, in whole seconds up to 2106. The zero value
// means never.
type RetainUntil time.Time

// Value returns the value that clickhouse-go stores.
func (r RetainUntil) Value() (driver.Value, error) {
	return time.Unix(int64(retention(time.Time(r))), 0).UTC(), nil
}

// Scan reads a stored time.
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

func (r RetainUntil) time() time.Time { return time.Time(r) }
