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
	if order := p.stream.Compare(q.stream); order != 0 {
		return order
	}
	return cmp.Compare(p.sequence, q.sequence)
}

// cursor reads rows that are sorted by place.
type cursor[T any] struct {
	at   func(*T) place
	next func() (*T, error, bool)
	stop func()
	head *T // nil at the end
}

// open reads the first row. The caller must close the cursor, also after an error.
func open[T any](rows iter.Seq2[*T, error], at func(*T) place) (*cursor[T], error) {
	c := &cursor[T]{at: at}
	c.next, c.stop = iter.Pull2(rows)
	return c, c.advance()
}

func (c *cursor[T]) advance() error {
	row, err, more := c.next()
	if !more {
		row = nil
	}
	c.head = row
	return err
}

func (c *cursor[T]) close() { c.stop() }

// before passes every row whose place is before p to f.
func (c *cursor[T]) before(p place, f func(*T) error) error {
	for c.head != nil && c.at(c.head).compare(p) < 0 {
		if err := f(c.head); err != nil {
			return err
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	return nil
}

// take returns the rows at p. The rows before p must have been read.
func (c *cursor[T]) take(p place) (rows []*T, err error) {
	for c.head != nil && c.at(c.head).compare(p) == 0 {
		rows = append(rows, c.head)
		if err := c.advance(); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// rest passes every remaining row to f.
func (c *cursor[T]) rest(f func(*T) error) error {
	for c.head != nil {
		if err := f(c.head); err != nil {
			return err
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	return nil
}
