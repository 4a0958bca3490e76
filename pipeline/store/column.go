package store

import (
	"reflect"
	"strings"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// field is one column of a block.
type field struct {
	name string
	kind string // the type that it must have in the live table
	values
}

// values are the rows of one column, in order of arrival. reset keeps their memory.
type values interface {
	database.Values
	reset()
	pick(rows []int) values
}

// makeFields creates the columns that a struct's members name in their tag ch, as name and type,
// and returns them. The columns of a struct in the struct are nested: their names get its tag, if
// it has one, as a prefix. It is called once for each batch that is reused, not for each message.
func makeFields(columns reflect.Value) (all []field) {
	for i := range columns.NumField() {
		member, tag := columns.Field(i), columns.Type().Field(i).Tag.Get("ch")
		if member.Kind() == reflect.Struct {
			for _, nested := range makeFields(member) {
				if tag != "" {
					nested.name = tag + "." + nested.name
				}
				all = append(all, nested)
			}
			continue
		}
		name, kind, _ := strings.Cut(tag, " ")
		values := newValues(kind)
		member.Set(reflect.ValueOf(values))
		all = append(all, field{name, kind, values})
	}
	return all
}

// newValues returns an empty column for a type of ClickHouse.
func newValues(kind string) values {
	words := func() proto.ColumnOf[string] { return new(proto.ColStr).LowCardinality() }
	switch kind {
	case "String":
		return new(text)
	case "LowCardinality(String)":
		return newNative(words)
	case "Array(LowCardinality(String))":
		return newList(words)
	case "Array(String)":
		return newList(func() proto.ColumnOf[string] { return new(proto.ColStr) })
	case "Array(Float64)":
		return newList(func() proto.ColumnOf[float64] { return new(proto.ColFloat64) })
	case "Array(UInt16)":
		return newList(func() proto.ColumnOf[uint16] { return new(proto.ColUInt16) })
	case "Bool":
		return newNative(func() proto.ColumnOf[bool] { return new(proto.ColBool) })
	case "UInt16":
		return newNative(func() proto.ColumnOf[uint16] { return new(proto.ColUInt16) })
	case "UInt32", "DateTime('UTC')":
		return newNative(func() proto.ColumnOf[uint32] { return new(proto.ColUInt32) })
	case "UInt64":
		return newNative(func() proto.ColumnOf[uint64] { return new(proto.ColUInt64) })
	case "Int64", "DateTime64(9, 'UTC')":
		return newNative(func() proto.ColumnOf[int64] { return new(proto.ColInt64) })
	case "Float64":
		return newNative(func() proto.ColumnOf[float64] { return new(proto.ColFloat64) })
	case "Nullable(Int64)":
		return newNative(func() proto.ColumnOf[proto.Nullable[int64]] { return proto.NewColNullable[int64](new(proto.ColInt64)) })
	case "Nullable(UInt64)":
		return newNative(func() proto.ColumnOf[proto.Nullable[uint64]] {
			return proto.NewColNullable[uint64](new(proto.ColUInt64))
		})
	case "Nullable(Float64)":
		return newNative(func() proto.ColumnOf[proto.Nullable[float64]] {
			return proto.NewColNullable[float64](new(proto.ColFloat64))
		})
	case "FixedString(32)":
		return newNative(func() proto.ColumnOf[[]byte] { return &proto.ColFixedStr{Size: len(schema.Digest{})} })
	}
	panic("store: no column is of type " + kind)
}

// text is a String column. It keeps strings that alias the messages, not copies of the bytes.
// Nothing writes to a message.
type text struct {
	rows []string
}

func (t *text) add(s string) { t.rows = append(t.rows, s) }

func (t *text) reset() {
	clear(t.rows) // releases the messages
	t.rows = t.rows[:0]
}

func (t *text) Rows() int { return len(t.rows) }

func (t *text) Encode(w *database.BlockWriter) error {
	for _, s := range t.rows {
		w.PutString(s)
		if err := w.Spill(); err != nil {
			return err
		}
	}
	return nil
}

func (t *text) pick(rows []int) values {
	out := &text{rows: make([]string, 0, len(rows))}
	for _, r := range rows {
		out.add(t.rows[r])
	}
	return out
}

// native is a column of any other type, in ClickHouse's own encoding.
type native[T any] struct {
	proto.ColumnOf[T]
	empty func() proto.ColumnOf[T]
}

func newNative[T any](empty func() proto.ColumnOf[T]) *native[T] {
	return &native[T]{ColumnOf: empty(), empty: empty}
}

func (n *native[T]) reset() {
	forget(n.ColumnOf)
	n.Reset()
}

// forget releases the strings that alias messages. ch-go keeps the strings of a LowCardinality
// column in full until others replace them.
func forget(column any) {
	switch c := column.(type) {
	case *proto.ColLowCardinality[string]:
		clear(c.Values)
	case *proto.ColArr[string]:
		forget(c.Data)
	}
}

func (n *native[T]) Encode(w *database.BlockWriter) error {
	if p, ok := n.ColumnOf.(proto.Preparable); ok {
		if err := p.Prepare(); err != nil {
			return err
		}
	}
	if state, ok := n.ColumnOf.(proto.StateEncoder); ok {
		state.EncodeState(&w.Buffer)
	}
	n.EncodeColumn(&w.Buffer)
	return nil
}

func (n *native[T]) pick(rows []int) values {
	out := newNative(n.empty)
	for _, r := range rows {
		out.Append(n.Row(r))
	}
	return out
}

type list[T any] struct {
	*native[[]T]
	array *proto.ColArr[T]
}

func newList[T any](items func() proto.ColumnOf[T]) *list[T] {
	n := newNative(func() proto.ColumnOf[[]T] { return proto.NewArray(items()) })
	return &list[T]{native: n, array: n.ColumnOf.(*proto.ColArr[T])}
}

// addItem appends to the row that the next call of endRow ends.
func (l *list[T]) addItem(item T) { l.array.Data.Append(item) }

func (l *list[T]) endRow() { l.array.Offsets.Append(uint64(l.array.Data.Rows())) }

func nullable[T any](v T, present bool) proto.Nullable[T] {
	return proto.Nullable[T]{Set: present, Value: v}
}
