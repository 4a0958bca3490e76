package store

import (
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// block is the rows of one table that travel as one INSERT, and how far that
// has come. It is reused from batch to batch.
type block struct {
	table   string
	present string // the query that looks rows up, from sql/queries
	fields  []field
	rows    rowKeys
	wire    *wire

	statement string
	suspects  []int // rows that may be stored already: their messages were redelivered
	id        string
	attempts  int
	doubt     bool // an attempt failed: any row may be stored
	unwritten bool // an attempt ended with ErrUnwritten: rows that are there may not stay
	done      bool
}

// rowKeys tells the rows of a block apart in the database.
type rowKeys interface {
	len() int
	key(row int) rowKey
	hour(row int) uint32
}

// rowKey names one row of one message: of the same message redelivered it is
// the same. The last four members are a verdict's.
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

// pick returns the fields with only the given rows. A nil list stands for all.
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

// EventHour is the first value of the sort keys: whole hours since 1970 of a
// time within schema.EarliestTime..LatestTime. Rows of neighbouring hours lie
// together, so that reading through FINAL compares neighbours only.
func EventHour(t time.Time) uint32 { return uint32(t.Unix() / 3600) }

// nanoseconds since 1970; a zero time is 0.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// forever is the last second that ClickHouse's DateTime can hold.
const forever = 1<<32 - 1

// retention is when a row may go: never where nobody said.
func retention(t time.Time) uint32 {
	if t.IsZero() || t.Unix() >= forever {
		return forever
	}
	return uint32(max(t.Unix(), 0))
}
