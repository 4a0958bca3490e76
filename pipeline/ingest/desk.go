package ingest

import (
	"compress/gzip"
	"sync"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// desk is the memory that one upload uses. It is reused between uploads.
type desk struct {
	windows [][]byte // each is larger than the previous one; the lines of a chunk may be in any of them
	unzip   gzip.Reader
	decoder schema.Decoder
	trace   schema.Trace
	records []stream.Record
	results []result
	answer  answer
}

// windowSizes are the sizes of the windows through which bodies are read. Each upload begins with
// the smallest, which is enough for most requests of agents, and takes a larger one when it is
// full.
var windowSizes = [...]int{8 << 10, 64 << 10, windowBytes}

// desks pools desks, and windows of each size.
type desks struct {
	desks   sync.Pool
	windows [len(windowSizes)]sync.Pool
}

// take returns a desk with the smallest window.
func (d *desks) take() *desk {
	used, ok := d.desks.Get().(*desk)
	if !ok {
		used = &desk{decoder: schema.Decoder{Warn: true}}
	}
	d.larger(used)
	return used
}

// larger adds the next larger window to the desk.
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

// giveBack returns a desk to the pool. Nobody else may hold its memory any more.
func (d *desks) giveBack(used *desk) {
	used.clear()
	used.answer.reset()
	for i := range used.windows {
		d.windows[i].Put(&used.windows[i])
	}
	used.windows = nil
	d.desks.Put(used)
}

// clear releases the lines of a chunk.
func (d *desk) clear() {
	clear(d.records)
	clear(d.results)
	d.records, d.results = d.records[:0], d.results[:0]
}
