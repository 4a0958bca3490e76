// Package batch decides when a batch is full: by rows, by bytes, or by the age
// of its first row.
//
// It holds no rows and no clock: a stage keeps its own columns and adds to a
// Meter what it put into them, with the time passed in. So the rule is one, and
// no row is copied for its sake.
//
// Invariants: a batch that admits a row stays within Rows and Bytes, except that an
// empty one admits any row (a row larger than Bytes travels alone); an empty
// batch is never due.
package batch

import "time"

// Limits bounds a batch. All of them must be positive.
type Limits struct {
	Rows  int           // most rows
	Bytes int           // most bytes, of what the stage counts as a row's size
	Age   time.Duration // longest time that the first row waits
}

// Meter measures the batch that is being filled. The zero value is an empty
// batch. It is for one goroutine.
type Meter struct {
	rows  int
	bytes int
	since time.Time // when the first row came
}

// Fits tells whether a row of size bytes may join the batch; if not, the batch
// is flushed first.
func (m *Meter) Fits(l Limits, size int) bool {
	return m.rows == 0 || m.rows < l.Rows && m.bytes+size <= l.Bytes
}

// Add counts a row of size bytes that joined at now.
func (m *Meter) Add(size int, now time.Time) {
	if m.rows == 0 {
		m.since = now
	}
	m.rows++
	m.bytes += size
}

// Due tells whether the batch must be flushed: it is full or its first row has
// waited for Age.
func (m *Meter) Due(l Limits, now time.Time) bool {
	return m.rows > 0 && (m.Full(l) || !now.Before(m.since.Add(l.Age)))
}

// Full tells whether no further row may join. A batch that is only due by its age
// may go on to grow while nobody is free to flush it.
func (m *Meter) Full(l Limits) bool { return m.rows >= l.Rows || m.bytes >= l.Bytes }

// Deadline returns when the batch becomes due by age, and false while it is
// empty.
func (m *Meter) Deadline(l Limits) (time.Time, bool) {
	return m.since.Add(l.Age), m.rows > 0
}

// Rows returns how many rows the batch holds.
func (m *Meter) Rows() int { return m.rows }

// Bytes returns the sum of the rows' sizes.
func (m *Meter) Bytes() int { return m.bytes }

// Reset empties the batch.
func (m *Meter) Reset() { *m = Meter{} }
