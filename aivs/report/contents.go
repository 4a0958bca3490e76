package report

import (
	"io"
	"strings"

	"github.com/plumbline/plumbline/aivs"
)

// budget is how many bytes of a bundle are kept for its page: of rows, of traces, of verdicts, and of
// everything else, each. So none of them can keep another one off the page. A part that Plumbline
// seals has 32 MiB of traces at most, and its rows repeat some of them.
const budget = 48 << 20

// The kinds of contents that have a budget.
const (
	ofRows = iota
	ofTraces
	ofVerdicts
	ofOthers
	kinds
)

// Contents is what a page needs of a bundle. It is filled while the bundle is verified:
//
//	var contents report.Contents
//	options.Row, options.File = contents.Row, contents.File
//	verified, err := aivs.Verify(file, options)
type Contents struct {
	actions     aivs.Actions // tells what is an action
	rows        []aivs.Row
	count       int64   // of all actions, those that are not kept, too
	first, last float64 // times of all actions
	files       []*file
	kept        [kinds]share
}

// share is how much of one kind is kept.
type share struct {
	size int  // bytes
	cut  bool // something was not kept
}

// take reports whether so many more bytes are kept. After the first that are not, none are.
func (s *share) take(n int) bool {
	s.cut = s.cut || s.size+n > budget
	if !s.cut {
		s.size += n
	}
	return !s.cut
}

// file is one file of a bundle.
type file struct {
	name string
	data []byte
	kept *share
}

// Row keeps a row that is an action.
func (c *Contents) Row(r *aivs.Row) { c.actions.Row(r, c.action) }

func (c *Contents) action(r *aivs.Row) {
	if c.count++; c.count == 1 {
		c.first, c.last = r.Timestamp, r.Timestamp
	}
	c.first, c.last = min(c.first, r.Timestamp), max(c.last, r.Timestamp)
	if c.kept[ofRows].take(len(r.InputsJSON) + len(r.OutputsJSON) + len(r.Error) + len(r.ToolName) + 256) {
		c.rows = append(c.rows, *r)
	}
}

// File returns the writer that keeps a file, nil for a file that the page does not need.
func (c *Contents) File(name string) io.Writer {
	kind := ofOthers
	switch {
	case name == aivs.TracesMember:
		kind = ofTraces
	case name == aivs.VerdictsMember:
		kind = ofVerdicts
	case name != aivs.SessionMember && !strings.HasPrefix(name, cardFolder):
		return nil
	}
	f := &file{name: name, kept: &c.kept[kind]}
	c.files = append(c.files, f)
	return f
}

// cardFolder is the folder of the cards in a bundle.
const cardFolder = "cards/"

// Write keeps bytes of a file. It never fails.
func (f *file) Write(p []byte) (int, error) {
	if f.kept.take(len(p)) {
		f.data = append(f.data, p...)
	}
	return len(p), nil
}

// cut reports whether something was not kept.
func (c *Contents) cut() bool {
	for _, s := range c.kept {
		if s.cut {
			return true
		}
	}
	return false
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
