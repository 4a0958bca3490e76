package store

import (
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// block holds the rows of one table that are sent as one INSERT, and the state of that INSERT. It
// is reused from batch to batch.
type block struct {
	table   string
	present string // the query that looks rows up, from sql/queries
	fields  []field
	rows    rowKeys
	wire    *wire

	statement string
	suspects  []int // rows that may already be stored: their messages were redelivered
	id        string
	attempts  int
	doubt     bool // an attempt failed: any row may already be stored
	unwritten bool // an attempt ended with ErrUnwritten: rows found by a lookup may be lost again
	done      bool
}

// rowKeys identifies the rows of a block in the database.
type rowKeys interface {
	len() int
	key(row int) rowKey
	hour(row int) uint32
}

// rowKey identifies one row of one message. A redelivered message has the same keys. The last
// four members belong to a verdict.
type rowKey struct {
	streamCreated int64 // Unix nanoseconds
	sequence      uint64
	digest        schema.Digest

	card    schema.Digest
	engine  string
	profile string
	revoked int64 // Unix nanoseconds
}

func newBlock(table, present string, rows rowKeys, fields []field) *block {
	b := &block{table: table, present: present, rows: rows, fields: fields, wire: newWire()}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	b.statement = "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")"
	return b
}

func (b *block) reset() {
	for i := range b.fields {
		b.fields[i].reset()
	}
	b.suspects = b.suspects[:0]
	b.id, b.attempts, b.doubt, b.unwritten, b.done = "", 0, false, false, false
}

// pick returns the fields with only the given rows. A nil list means all rows.
func (b *block) pick(rows []int) []field {
	if rows == nil {
		return b.fields
	}
	out := make([]field, len(b.fields))
	for i, f := range b.fields {
		out[i] = field{name: f.name, kind: f.kind, values: f.pick(rows)}
	}
	return out
}

// EventHour returns a time as whole hours since 1970. The time must lie within
// schema.EarliestTime..LatestTime. EventHour is the first column of the sort keys: rows of
// neighbouring hours are stored together, so reading through FINAL compares neighbours only.
func EventHour(t time.Time) uint32 { return uint32(t.Unix() / 3600) }

// nanoseconds returns t in nanoseconds since 1970. A zero time is 0.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// forever is the last second that ClickHouse's DateTime can represent.
const forever = 1<<32 - 1

// retention returns when a row may be deleted. A zero time means never.
func retention(t time.Time) uint32 {
	if t.IsZero() || t.Unix() >= forever {
		return forever
	}
	return uint32(max(t.Unix(), 0))
}
