package ingest

import (
	"compress/gzip"
	"sync"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// desk is the memory that one upload works with, reused from one to the next.
type desk struct {
	windows [][]byte // each larger than the one before; lines of a chunk may lie in all of them
	unzip   gzip.Reader
	decoder schema.Decoder
	trace   schema.Trace
	records []stream.Record
	results []result
	answer  answer
}

// windowSizes are those of the windows through which bodies are read. Each begins with
// the least, in which most requests of agents fit, and takes a larger one when it is full.
var windowSizes = [...]int{8 << 10, 64 << 10, windowBytes}

// desks keeps desks, and windows of each size.
type desks struct {
	desks   sync.Pool
	windows [len(windowSizes)]sync.Pool
}

// take returns a desk with the least window.
func (d *desks) take() *desk {
	used, ok := d.desks.Get().(*desk)
	if !ok {
		used = &desk{decoder: schema.Decoder{Warn: true}}
	}
	d.larger(used)
	return used
}

// larger gives the desk the next larger window.
func (d *desks) larger(to *desk) []byte {
	size := len(to.windows)
	window, ok := d.windows[size].Get().(*[]byte)
	if !ok {
		made := make([]byte, windowSizes[size])
		window = &made
	}
	to.windows = append(to.windows, *window)
	return *window
}

// giveBack is for a desk whose memory nobody else holds any more.
func (d *desks) giveBack(used *desk) {
	used.clear()
	used.answer.reset()
	for i := range used.windows {
		d.windows[i].Put(&used.windows[i])
	}
	used.windows = nil
	d.desks.Put(used)
}

// clear lets go of the lines of a chunk.
func (d *desk) clear() {
	clear(d.records)
	clear(d.results)
	d.records, d.results = d.records[:0], d.results[:0]
}
