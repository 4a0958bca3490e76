package aap

import (
	"strconv"
	"strings"
)

// textRoom is the initial memory for the descriptions of a verdict, in bytes; it holds a few of
// them.
const textRoom = 256

// texts writes the descriptions of a verdict, which keeps them. Several descriptions share one
// piece of memory, so a trace with many faults costs little more than a trace with one.
type texts struct {
	builder strings.Builder
	start   int // of the description being written
	scratch []byte
}

// reset starts a verdict; the previous verdict keeps its descriptions.
func (t *texts) reset() { t.builder.Reset() }

// say starts a description.
func (t *texts) say(s string) *texts {
	if full := t.builder.Cap(); full-t.builder.Len() < textRoom/2 {
		t.builder.Reset() // the descriptions written so far keep their memory
		t.builder.Grow(max(textRoom, 2*full))
	}
	t.start = t.builder.Len()
	return t.and(s)
}

func (t *texts) and(s string) *texts {
	t.builder.WriteString(s)
	return t
}

// quoted appends a publisher's text in quotes.
func (t *texts) quoted(s string) *texts {
	t.scratch = strconv.AppendQuote(t.scratch[:0], s)
	t.builder.Write(t.scratch)
	return t
}

// score appends a number with two decimals.
func (t *texts) score(x float64) *texts {
	t.scratch = strconv.AppendFloat(t.scratch[:0], x, 'f', 2, 64)
	t.builder.Write(t.scratch)
	return t
}

func (t *texts) number(n int) *texts {
	t.scratch = strconv.AppendInt(t.scratch[:0], int64(n), 10)
	t.builder.Write(t.scratch)
	return t
}

// done ends the description and returns it.
func (t *texts) done() string { return t.builder.String()[t.start:] }
