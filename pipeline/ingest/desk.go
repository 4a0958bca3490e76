package ingest

import (
	"compress/gzip"
	"net/http"
	"sync"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// desk is the memory that one upload works with, reused from one to the next.
type desk struct {
	window  []byte
	unzip   gzip.Reader
	decoder schema.Decoder
	trace   schema.Trace
	records []stream.Record
	results []result
	answer  answer
}

// smallWindow is the window of a body that is known to be shorter: most
// requests of agents hold a few traces.
const smallWindow = 64 << 10

// desks keeps desks of the two sizes.
type desks struct{ small, large sync.Pool }

// windowFor is the size of window that a request needs.
func windowFor(r *http.Request, gzipped bool) int {
	if !gzipped && r.ContentLength >= 0 && r.ContentLength < smallWindow {
		return smallWindow
	}
	return windowBytes
}

func (d *desks) pool(window int) *sync.Pool {
	if window == smallWindow {
		return &d.small
	}
	return &d.large
}

func (d *desks) take(window int) *desk {
	if used, ok := d.pool(window).Get().(*desk); ok {
		return used
	}
	return &desk{window: make([]byte, window), decoder: schema.Decoder{Warn: true}}
}

// giveBack is for a desk whose memory nobody else holds any more.
func (d *desks) giveBack(used *desk) {
	used.clear()
	used.answer.reset()
	d.pool(len(used.window)).Put(used)
}

// clear lets go of the lines of a chunk.
func (d *desk) clear() {
	clear(d.records)
	clear(d.results)
	d.records, d.results = d.records[:0], d.results[:0]
}
