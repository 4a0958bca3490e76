package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/schema"
)

// A batch is cut when it has so many lines or bytes, or is so old.
const (
	batchLines = 500
	batchBytes = 512 << 10
	batchAge   = 250 * time.Millisecond
)

const (
	spoolEvery     = time.Minute      // how often dead owners are looked for
	attemptTimeout = 30 * time.Second // of one request
	firstPause     = 250 * time.Millisecond
	longestPause   = 30 * time.Second
	longestRequest = 5 * time.Minute // the longest pause that an answer may ask for
	syncAfter      = time.Second     // a file that waits longer is synced
)

// write moves lines from the queue into the spool and cuts batches, until the recorder is closed.
func (r *Recorder) write() {
	minute := time.NewTicker(spoolEvery)
	defer minute.Stop()
	age := time.NewTimer(batchAge)
	defer age.Stop()
	for {
		select {
		case <-r.wake:
		case <-age.C:
		case <-minute.C:
			r.spoolFailed("touch its owner", r.spool.touch())
			r.takeOver()
		case <-r.ctx.Done():
		}
		ending := r.ctx.Err() != nil // before the queue is taken for the last time
		flush := r.store()
		if b := r.current; b != nil && (flush || ending || time.Since(b.born) >= batchAge) {
			r.cut()
		} else if b != nil {
			age.Reset(batchAge - time.Since(b.born))
		}
		if ending {
			return
		}
	}
}

// store moves the queue into the spool. It reports whether Flush waits for the lines.
func (r *Recorder) store() (flush bool) {
	r.mu.Lock()
	queue := r.queue
	flush, r.flush = r.flush, false
	r.queue, r.queued = nil, 0
	r.mu.Unlock()
	for len(queue) > 0 {
		n := r.storeSome(queue) // 0 if memory must take what the disk does not
		for _, i := range queue[:n] {
			if i.stored != nil {
				close(i.stored)
			}
		}
		queue = queue[n:]
	}
	return flush
}

// storeSome adds as many items to the current batch as it may have, and returns their number.
func (r *Recorder) storeSome(queue []item) (n int) {
	if r.current == nil {
		b, err := r.spool.open()
		r.spoolFailed("create a file", err)
		r.current = b
	}
	b := r.current
	r.mu.Lock()
	room := r.config.SpoolBytes - r.kept
	if b.path == "" {
		room = min(room, maxWaitingBytes-r.memory)
	}
	r.mu.Unlock()
	var lines [][]byte
	var invalid []error
	size, traces, dropped := int64(0), 0, 0
	for n < len(queue) && len(b.lines)+len(lines) < batchLines && b.bytes+size < batchBytes {
		i := &queue[n]
		line, err := r.signed(i)
		n++
		if i.trace {
			traces++
		}
		switch {
		case err != nil:
			invalid = append(invalid, err)
		case size+int64(len(line))+1 > room && i.trace:
			dropped++
		case size+int64(len(line))+1 > room: // the session is sealed when it is idle
		default:
			lines, size = append(lines, line), size+int64(len(line))+1
		}
	}
	if err := b.add(lines, r.config.Durable); err != nil {
		r.spoolFailed("write", err)
		r.cut() // what the file has stays there
		r.current = &batch{born: time.Now()}
		return 0
	}
	for _, err := range invalid {
		r.invalid("", err)
	}
	b.items, b.traces = b.items+n, b.traces+traces
	r.mu.Lock()
	r.kept += size
	if b.path == "" {
		r.memory += size
	}
	r.mu.Unlock()
	if dropped > 0 {
		why := fmt.Sprintf("the spool is full: it may have %d bytes, and ingest does not answer", r.config.SpoolBytes)
		if b.path == "" {
			why = fmt.Sprintf("no spool can be written, and memory may keep %d bytes", int64(maxWaitingBytes))
		}
		r.dropped(dropped, why)
	}
	if len(b.lines) >= batchLines || b.bytes >= batchBytes {
		r.cut()
	}
	return n
}

// cut hands the current batch to the delivery.
func (r *Recorder) cut() {
	b := r.current
	r.current = nil
	onDisk := b.path != ""
	r.spoolFailed("close a file", b.cut())
	r.mu.Lock()
	if onDisk && b.path == "" {
		r.memory += b.bytes
	}
	r.batches = append(r.batches, b)
	r.announce()
	r.mu.Unlock()
}

// announce wakes everybody who waits for a change. The caller holds the lock.
func (r *Recorder) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// takeOver appends the files of dead owners to the batches.
func (r *Recorder) takeOver() {
	taken, err := r.spool.takeOver()
	r.spoolFailed("take over the files of an earlier process", err)
	r.mu.Lock()
	r.batches = append(r.batches, taken...)
	for _, b := range taken {
		r.kept += b.bytes
	}
	r.announce()
	r.mu.Unlock()
}

func (r *Recorder) spoolFailed(operation string, err error) {
	if err != nil {
		r.reports.report(&RecordError{Kind: KindSpool, Message: fmt.Sprintf("the spool %s: %s: %v", r.config.Spool, operation, err)})
	}
}

// deliver publishes the batches in their order, until the recorder is closed.
func (r *Recorder) deliver() {
	for {
		r.mu.Lock()
		var b *batch
		if len(r.batches) > 0 {
			b = r.batches[0]
		}
		changed := r.changed
		r.mu.Unlock()
		if b == nil {
			select {
			case <-changed:
				continue
			case <-r.ctx.Done():
				return
			}
		}
		if !r.send(b) {
			return
		}
		r.spoolFailed("remove a file", b.remove())
		r.mu.Lock()
		r.batches[0] = nil
		r.batches = r.batches[1:]
		r.finished, r.waiting, r.kept = r.finished+b.items, r.waiting-b.traces, r.kept-b.bytes
		if b.path == "" {
			r.memory -= b.bytes
		}
		r.announce()
		r.mu.Unlock()
	}
}

// send publishes a batch. It reports whether every line has its outcome; otherwise the recorder
// was closed.
func (r *Recorder) send(b *batch) bool {
	var lines [][]byte
	load := func(context.Context) (err error) {
		lines, err = b.load()
		return err
	}
	if !r.persist(load) { // the process may have too many open files, for example
		return false
	}
	for len(lines) > 0 {
		if !r.persist(func(ctx context.Context) error { return r.publish(ctx, &lines) }) {
			return false
		}
	}
	return true
}

// endOf reads a line as the end of a session; nil if it is a trace.
func endOf(line []byte) *endItem {
	if !bytes.HasPrefix(line, []byte(`{"end_session"`)) {
		return nil
	}
	end := new(endItem)
	if err := json.Unmarshal(line, end); err != nil {
		return nil // ingest refuses it, and says why
	}
	return end
}

// publish sends the traces before the first end of a session, or that end, once. It removes the
// lines that have an outcome.
func (r *Recorder) publish(ctx context.Context, lines *[][]byte) error {
	var body bytes.Buffer
	n := 0
	for n < len(*lines) && n < r.most && endOf((*lines)[n]) == nil {
		body.Write((*lines)[n])
		body.WriteByte('\n')
		n++
	}
	if n == 0 {
		return r.end(ctx, lines)
	}
	got, err := r.publisher.send(ctx, http.MethodPost, "/v1/traces", "application/x-ndjson", body.Bytes())
	if err != nil {
		return err
	}
	outcomes, err := got.outcomes(n)
	switch {
	case err != nil && got.code == http.StatusRequestEntityTooLarge && n > 1:
		r.most = n / 2
		return nil
	case err != nil && got.code == http.StatusRequestEntityTooLarge:
		err = fmt.Errorf("ingest, or a proxy before it, takes no line of %d bytes: %w", len((*lines)[0]), err)
		outcomes = []Outcome{{Status: Refused, Faults: []schema.Fault{{Message: err.Error()}}}}
	case err != nil:
		return err
	}
	var left [][]byte
	for i := range outcomes {
		if outcomes[i].final() {
			r.answered(&outcomes[i])
		} else {
			left = append(left, (*lines)[i])
		}
	}
	*lines = append(left, (*lines)[n:]...)
	if len(left) > 0 {
		return fmt.Errorf("%d traces were not stored: %w", len(left), got.problem())
	}
	return nil
}

// answered counts and reports the outcome of a trace.
func (r *Recorder) answered(o *Outcome) {
	e := &RecordError{Kind: KindRefused, Message: "ingest refused the trace", TraceID: o.TraceID, Faults: o.Faults}
	r.mu.Lock()
	switch o.Status {
	case Accepted:
		r.stats.Accepted++
	case Duplicate:
		r.stats.Duplicate++
	case Forbidden:
		r.stats.Forbidden++
		e.Kind, e.Message = KindForbidden, "the token may not publish for this agent"
	default:
		r.stats.Refused++
	}
	r.mu.Unlock()
	if o.Status != Accepted && o.Status != Duplicate {
		r.reports.report(e)
	}
	for _, w := range o.Warnings {
		r.reports.warn(w.Code, w.Message, o.TraceID)
	}
}

// end requests the end of the session that the first line names, and removes the line. A refusal
// of the session is final: it is sealed when it is idle.
func (r *Recorder) end(ctx context.Context, lines *[][]byte) error {
	got, err := r.publisher.send(ctx, http.MethodPost, "/v1/sessions/end", "application/json", sessionOf((*lines)[0]))
	if err != nil {
		return err
	}
	switch {
	case got.code < http.StatusMultipleChoices:
	case got.code == http.StatusBadRequest || got.code == http.StatusForbidden || got.code == http.StatusUnprocessableEntity:
		r.reports.report(&RecordError{Kind: KindRequest, Message: "the end of a session: " + got.problem().Error()})
	case got.temporary() || got.code >= http.StatusInternalServerError:
		return got.problem()
	default:
		return backoff.Permanent(got.problem())
	}
	*lines = (*lines)[1:]
	return nil
}

// sessionOf returns the request that ends the session of a line.
func sessionOf(line []byte) []byte {
	body, err := json.Marshal(endOf(line).EndSession)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return body
}

// persist repeats an attempt until it succeeds. It reports whether it has: it ends when the
// recorder is closed.
func (r *Recorder) persist(attempt func(context.Context) error) bool {
	wait := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0))}
	for {
		ctx, cancel := context.WithTimeout(r.ctx, attemptTimeout)
		err := attempt(ctx)
		cancel()
		switch {
		case err == nil:
			return true
		case r.ctx.Err() != nil:
			return false
		}
		r.unpublished(err)
		if problem, ok := errors.AsType[*Problem](err); ok {
			wait.requested = min(problem.RetryAfter, longestRequest)
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-r.kick:
		case <-r.ctx.Done():
			return false
		}
	}
}

// unpublished reports why traces wait, and syncs files that wait for long.
func (r *Recorder) unpublished(err error) {
	e := &RecordError{Kind: KindUnreachable, Message: "ingest cannot be reached: " + err.Error()}
	problem, answered := errors.AsType[*Problem](err)
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		e.Kind, e.Message = KindSpool, "the spool cannot be read: "+err.Error()
	} else if refusal, ok := errors.AsType[*backoff.PermanentError](err); ok && (!answered || problem.Code < http.StatusInternalServerError) {
		e.Kind, e.Message = KindRequest, "ingest refused the request: "+refusal.Error()
	}
	r.mu.Lock()
	e.Count = r.waiting
	waiting := r.batches[:len(r.batches):len(r.batches)]
	r.mu.Unlock()
	e.Message += "; the traces wait in the spool"
	if r.spool.agent == "" {
		e.Message = e.Message[:len(e.Message)-len("the spool")] + "memory"
	}
	r.reports.report(e)
	for _, b := range waiting {
		if time.Since(b.born) >= syncAfter {
			r.spoolFailed("sync a file", b.sync())
		}
	}
}
