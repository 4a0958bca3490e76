package report

import (
	"io"
	"strings"

	"github.com/plumbline/plumbline/aivs"
)

// budget is how many bytes of a bundle are kept for its page: rows, traces, verdicts and cards
// together. A part that Plumbline seals has 32 MiB of traces at most, and its rows repeat some of
// them.
const budget = 192 << 20

// Contents is what a page needs of a bundle. It is filled while the bundle is verified:
//
//	var contents report.Contents
//	options.Row, options.File = contents.Row, contents.File
//	verified, err := aivs.Verify(file, options)
type Contents struct {
	rows  []aivs.Row
	count int64 // of all actions, those that are not kept, too
	files []*file
	size  int  // bytes kept
	cut   bool // something was not kept
}

// file is one file of a bundle.
type file struct {
	name     string
	data     []byte
	contents *Contents
}

// Row keeps a row that is an action.
func (c *Contents) Row(r *aivs.Row) {
	if r.Framing() {
		return
	}
	c.count++
	if c.take(len(r.InputsJSON) + len(r.OutputsJSON) + len(r.Error) + len(r.ToolName) + 256) {
		c.rows = append(c.rows, *r)
	}
}

// File returns the writer that keeps a file, nil for a file that the page does not need.
func (c *Contents) File(name string) io.Writer {
	switch {
	case name == aivs.TracesMember, name == aivs.VerdictsMember, name == aivs.SessionMember, strings.HasPrefix(name, cardFolder):
		f := &file{name: name, contents: c}
		c.files = append(c.files, f)
		return f
	}
	return nil
}

// cardFolder is the folder of the cards in a bundle.
const cardFolder = "cards/"

// Write keeps bytes of a file. It never fails.
func (f *file) Write(p []byte) (int, error) {
	if f.contents.take(len(p)) {
		f.data = append(f.data, p...)
	}
	return len(p), nil
}

// take reports whether so many more bytes are kept. After the first that are not, none are.
func (c *Contents) take(n int) bool {
	c.cut = c.cut || c.size+n > budget
	if !c.cut {
		c.size += n
	}
	return !c.cut
}

// of returns the content of a file, nil if the bundle does not have it.
func (c *Contents) of(name string) []byte {
	for _, f := range c.files {
		if f.name == name {
			return f.data
		}
	}
	return nil
}
