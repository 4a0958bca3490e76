// Package limit decides when a batch is full: by rows, by bytes, or by the age of
// its first row.
//
// It holds no rows and reads no clock. A stage keeps its own columns, counts in a
// Meter what it adds, and passes the time in. So no row is copied to be counted.
//
// Invariants: a batch that admits a row stays within Rows and Bytes, except that an
// empty batch admits any row. An empty batch is never due.
package limit

import "time"

// Batch bounds a batch. All limits must be positive.
type Batch struct {
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

// Fits reports whether a row of size bytes may join the batch. If not, the batch
// is to be flushed first.
func (m *Meter) Fits(l Batch, size int) bool {
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

// Due reports whether the batch is to be flushed: it is full, or its first row has
// waited for Age.
func (m *Meter) Due(l Batch, now time.Time) bool {
	return m.rows > 0 && (m.Full(l) || !now.Before(m.since.Add(l.Age)))
}

// Full reports whether no further row may join. A batch that is due only by its age
// may grow while nobody is free to flush it.
func (m *Meter) Full(l Batch) bool { return m.rows >= l.Rows || m.bytes >= l.Bytes }

// Deadline returns when the batch becomes due by age, and false while it is
// empty.
func (m *Meter) Deadline(l Batch) (time.Time, bool) {
	return m.since.Add(l.Age), m.rows > 0
}

// Rows returns how many rows the batch holds.
func (m *Meter) Rows() int { return m.rows }

// Bytes returns the sum of the rows' sizes.
func (m *Meter) Bytes() int { return m.bytes }

// Reset empties the batch.
func (m *Meter) Reset() { *m = Meter{} }
