package aap

import (
	"strconv"
	"strings"
)

// textRoom is the memory first taken for the descriptions of a verdict, in
// bytes; a few fit.
const textRoom = 256

// texts writes the descriptions of a verdict, which keeps them. Several share
// one piece of memory, so that a trace with many faults costs little more than
// one with a single fault.
type texts struct {
	builder strings.Builder
	start   int // of the description being written
	scratch []byte
}

// reset begins a verdict; the descriptions of the one before belong to that.
func (t *texts) reset() { t.builder.Reset() }

// say begins a description.
func (t *texts) say(s string) *texts {
	if full := t.builder.Cap(); full-t.builder.Len() < textRoom/2 {
		t.builder.Reset() // descriptions keep the memory they are in
		t.builder.Grow(max(textRoom, 2*full))
	}
	t.start = t.builder.Len()
	return t.and(s)
}

// and goes on.
func (t *texts) and(s string) *texts {
	t.builder.WriteString(s)
	return t
}

// quoted goes on with a publisher's text.
func (t *texts) quoted(s string) *texts {
	t.scratch = strconv.AppendQuote(t.scratch[:0], s)
	t.builder.Write(t.scratch)
	return t
}

// score goes on with a number of two decimals.
func (t *texts) score(x float64) *texts {
	t.scratch = strconv.AppendFloat(t.scratch[:0], x, 'f', 2, 64)
	t.builder.Write(t.scratch)
	return t
}

// number goes on with a whole number.
func (t *texts) number(n int) *texts {
	t.scratch = strconv.AppendInt(t.scratch[:0], int64(n), 10)
	t.builder.Write(t.scratch)
	return t
}

// done ends the description.
func (t *texts) done() string { return t.builder.String()[t.start:] }
