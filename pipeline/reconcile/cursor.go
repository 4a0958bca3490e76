package reconcile

import (
	"cmp"
	"iter"
	"time"
)

// place is a position: the creation time of the stream, and the sequence in it.
type place struct {
	stream   time.Time
	sequence uint64
}

func (p place) compare(q place) int {
	return cmp.Or(p.stream.Compare(q.stream), cmp.Compare(p.sequence, q.sequence))
}

// cursor reads rows that are sorted by place. An error ends the rows and fails the check.
type cursor[T any] struct {
	at    func(*T) place
	fail  func(error)
	next  func() (*T, error, bool)
	close func()
	head  *T // nil at the end
}

// open reads the first row. The caller must close the cursor.
func open[T any](c *check, rows iter.Seq2[*T, error], at func(*T) place) *cursor[T] {
	cursor := &cursor[T]{at: at, fail: c.fail}
	cursor.next, cursor.close = iter.Pull2(rows)
	cursor.advance()
	return cursor
}

func (c *cursor[T]) advance() {
	row, err, _ := c.next()
	if err != nil {
		c.fail(err)
		row = nil
	}
	c.head = row
}

// take returns the rows at p. It passes the rows before p to unmatched.
func (c *cursor[T]) take(p place, unmatched func(*T)) (rows []*T) {
	for ; c.head != nil && c.at(c.head).compare(p) < 0; c.advance() {
		unmatched(c.head)
	}
	for ; c.head != nil && c.at(c.head).compare(p) == 0; c.advance() {
		rows = append(rows, c.head)
	}
	return rows
}

func (c *cursor[T]) rest(unmatched func(*T)) {
	for ; c.head != nil; c.advance() {
		unmatched(c.head)
	}
}
