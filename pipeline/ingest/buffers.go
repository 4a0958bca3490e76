package ingest

import (
	"compress/gzip"
	"sync"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// buffers is the memory that one upload uses. It is reused between uploads.
type buffers struct {
	windows [][]byte // each is larger than the previous one; the lines of a chunk may be in any of them
	unzip   gzip.Reader
	decoder schema.Decoder
	trace   schema.Trace
	records []stream.Record
	old     []oldLine
	results []result
	answer  answer
}

// windowSizes are the sizes of the windows through which bodies are read. Each upload begins with
// the smallest, which is enough for most requests of agents, and takes a larger one when it is
// full.
var windowSizes = [...]int{8 << 10, 64 << 10, windowBytes}

// bufferPool pools buffers, and windows of each size.
type bufferPool struct {
	buffers sync.Pool
	windows [len(windowSizes)]sync.Pool
}

// take returns buffers with the smallest window.
func (p *bufferPool) take() *buffers {
	b, ok := p.buffers.Get().(*buffers)
	if !ok {
		b = &buffers{decoder: schema.Decoder{Warn: true}}
	}
	p.larger(b)
	return b
}

// larger adds the next larger window to the buffers.
func (p *bufferPool) larger(to *buffers) []byte {
	size := len(to.windows)
	window, ok := p.windows[size].Get().(*[]byte)
	if !ok {
		made := make([]byte, windowSizes[size])
		window = &made
	}
	to.windows = append(to.windows, *window)
	return *window
}

// giveBack returns buffers to the pool. Nobody else may use their memory any more.
func (p *bufferPool) giveBack(b *buffers) {
	b.clear()
	b.answer = answer{text: b.answer.text[:0]}
	for i := range b.windows {
		p.windows[i].Put(&b.windows[i])
	}
	b.windows = nil
	p.buffers.Put(b)
}

// clear releases the lines of a chunk.
func (b *buffers) clear() {
	clear(b.records)
	clear(b.results)
	b.records, b.old, b.results = b.records[:0], b.old[:0], b.results[:0]
}
