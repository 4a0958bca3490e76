package store

import (
	"bytes"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/plumbline/plumbline/schema"
)

// field is one column of a block: its name, the type that it must have in the live table, and its
// values.
type field struct {
	name string
	kind string
	values
}

// values are the rows of one column, in order of arrival. reset keeps their memory.
type values interface {
	reset()
	write(dst column.Interface, w *wire) error
	pick(rows []int) values
}

// text is a String column. It keeps strings that alias the messages, not copies of the bytes.
// Nothing writes to a message.
type text struct {
	rows  []string
	bytes int
}

func (t *text) add(s string) {
	t.rows = append(t.rows, s)
	t.bytes += len(s)
}

func (t *text) reset() {
	clear(t.rows) // releases the messages
	t.rows, t.bytes = t.rows[:0], 0
}

func (t *text) write(dst column.Interface, w *wire) error {
	if err := w.reserve(dst, t.bytes); err != nil {
		return err
	}
	_, err := dst.Append(t.rows)
	return err
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

func (n *native[T]) write(dst column.Interface, w *wire) error {
	if p, ok := n.ColumnOf.(proto.Preparable); ok {
		if err := p.Prepare(); err != nil {
			return err
		}
	}
	return w.carry(n.ColumnOf, n.Rows(), dst)
}

func (n *native[T]) pick(rows []int) values {
	out := newNative(n.empty)
	for _, r := range rows {
		out.Append(n.Row(r))
	}
	return out
}

// wire passes columns to the driver: it encodes them, and the driver decodes them as if they came
// from the server. The driver's own methods (clickhouse-go) build LowCardinality and Array
// columns value by value with reflection, which is slower. The figures are in
// docs/adr/0001-clickhouse-schema.md.
type wire struct {
	encoded proto.Buffer
	source  bytes.Reader
	reader  *proto.Reader
	padding []byte
}

func newWire() *wire {
	w := new(wire)
	w.reader = proto.NewReader(&w.source)
	return w
}

func (w *wire) carry(from proto.ColInput, rows int, to column.Interface) error {
	w.encoded.Reset()
	from.EncodeColumn(&w.encoded)
	w.source.Reset(w.encoded.Buf)
	if err := to.Decode(w.reader, rows); err != nil {
		return fmt.Errorf("encode column %s: %w", to.Name(), err)
	}
	return nil
}

// reserve makes room in a String column of the driver. Without it the column grows by a quarter
// at a time, and copies its contents about twenty times on the way.
func (w *wire) reserve(column column.Interface, size int) error {
	if len(w.padding) < size {
		w.padding = make([]byte, size)
	}
	if err := column.AppendRow(w.padding[:size]); err != nil {
		return err
	}
	column.Reset() // keeps the memory
	return nil
}

// The column types of the tables, named after their types in ClickHouse.

const (
	kindString      = "String"
	kindWord        = "LowCardinality(String)"
	kindWords       = "Array(LowCardinality(String))"
	kindStrings     = "Array(String)"
	kindBool        = "Bool"
	kindUInt16      = "UInt16"
	kindUInt32      = "UInt32"
	kindUInt64      = "UInt64"
	kindInt64       = "Int64"
	kindFloat64     = "Float64"
	kindFloats      = "Array(Float64)"
	kindUInt16s     = "Array(UInt16)"
	kindMaybeFloat  = "Nullable(Float64)"
	kindMaybeInt64  = "Nullable(Int64)"
	kindMaybeUInt64 = "Nullable(UInt64)"
	kindDigest      = "FixedString(32)"
	kindTime        = "DateTime64(9, 'UTC')"
	kindSeconds     = "DateTime('UTC')"
)

func newWords() *native[string] {
	return newNative(func() proto.ColumnOf[string] { return new(proto.ColStr).LowCardinality() })
}

func newBools() *native[bool] {
	return newNative(func() proto.ColumnOf[bool] { return new(proto.ColBool) })
}
func newUInt16s() *native[uint16] {
	return newNative(func() proto.ColumnOf[uint16] { return new(proto.ColUInt16) })
}
func newUInt32s() *native[uint32] {
	return newNative(func() proto.ColumnOf[uint32] { return new(proto.ColUInt32) })
}
func newUInt64s() *native[uint64] {
	return newNative(func() proto.ColumnOf[uint64] { return new(proto.ColUInt64) })
}
func newInt64s() *native[int64] {
	return newNative(func() proto.ColumnOf[int64] { return new(proto.ColInt64) })
}
func newFloats() *native[float64] {
	return newNative(func() proto.ColumnOf[float64] { return new(proto.ColFloat64) })
}

func newMaybe[T any](empty func() proto.ColumnOf[T]) *native[proto.Nullable[T]] {
	return newNative(func() proto.ColumnOf[proto.Nullable[T]] { return proto.NewColNullable(empty()) })
}

// maybe returns a nullable value.
func maybe[T any](v T, present bool) proto.Nullable[T] {
	if !present {
		return proto.Null[T]()
	}
	return proto.NewNullable(v)
}

// digests is a column of SHA-256 sums.
type digests struct{ *native[[]byte] }

func newDigests() digests {
	return digests{newNative(func() proto.ColumnOf[[]byte] { return &proto.ColFixedStr{Size: len(schema.Digest{})} })}
}

func (d digests) add(sum *schema.Digest) { d.Append(sum[:]) }

func (d digests) at(row int) schema.Digest { return schema.Digest(d.Row(row)) }

// lists is a column of arrays.
type lists[T any] struct {
	*native[[]T]
	array *proto.ColArr[T]
}

func newLists[T any](items func() proto.ColumnOf[T]) lists[T] {
	n := newNative(func() proto.ColumnOf[[]T] { return proto.NewArray(items()) })
	return lists[T]{native: n, array: n.ColumnOf.(*proto.ColArr[T])}
}

// addItem appends to the row that the next call of endRow ends.
func (l lists[T]) addItem(item T) { l.array.Data.Append(item) }

func (l lists[T]) endRow() { l.array.Offsets.Append(uint64(l.array.Data.Rows())) }
