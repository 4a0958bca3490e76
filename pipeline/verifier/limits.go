package verifier

import "time"

// Limits decide when a batch is committed. All must be positive.
type Limits struct {
	Rows  int           // most rows
	Bytes int           // most bytes, of what is counted as a row's size
	Age   time.Duration // longest time that the first row waits
}

// Meter counts the rows of the batch that is being filled. It holds no rows and reads no clock. The
// zero value is an empty batch, which is never due. It is for one goroutine.
type Meter struct {
	rows  int
	bytes int
	since time.Time // when the first row came
}

// Add counts a row of size bytes that joined at now.
func (m *Meter) Add(size int, now time.Time) {
	if m.rows == 0 {
		m.since = now
	}
	m.rows++
	m.bytes += size
}

// Due reports whether the batch is to be committed: it is full, or its first row has waited for
// Age.
func (m *Meter) Due(l Limits, now time.Time) bool {
	return m.rows > 0 && (m.Full(l) || !now.Before(m.since.Add(l.Age)))
}

// Full reports whether no further row may join. A batch that is due only by its age may grow while
// the previous one is being committed.
func (m *Meter) Full(l Limits) bool { return m.rows >= l.Rows || m.bytes >= l.Bytes }

// Rows returns how many rows the batch holds.
func (m *Meter) Rows() int { return m.rows }

// Bytes returns the sum of the rows' sizes.
func (m *Meter) Bytes() int { return m.bytes }

// Reset empties the batch.
func (m *Meter) Reset() { *m = Meter{} }
