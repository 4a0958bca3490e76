package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// RecorderConfig configures a Recorder. AgentID and CardID are required.
type RecorderConfig struct {
	AgentID string
	CardID  string // the card in effect
	URL     string // of ingest; empty: $PLUMBLINE_URL, else http://127.0.0.1:8080
	Token   string // empty: $PLUMBLINE_TOKEN; scopes traces:write and sessions:write
	HTTP    *http.Client

	// Spool is the directory that keeps traces until ingest has answered for them. Empty is
	// $PLUMBLINE_SPOOL, else $XDG_STATE_HOME/plumbline/spool, else ~/.local/state/plumbline/spool.
	// NoSpool keeps them in memory only.
	Spool      string
	SpoolBytes int64 // the most that this recorder keeps; 0: 256 MiB

	Key   ed25519.PrivateKey // signs each trace; nil: traces are not signed
	KeyID string

	Durable bool // Record returns once the trace is on this machine's disk

	OnError   func(*RecordError)                  // may be called from any goroutine; nil: slog
	OnWarning func(code, message, traceID string) // once per code; nil: slog
}

// NoSpool is a RecorderConfig.Spool that keeps traces in memory only.
const NoSpool = "\x00memory"

// Defaults of a recorder.
const (
	defaultURL        = "http://127.0.0.1:8080"
	defaultSpoolBytes = 256 << 20
	maxWaitingBytes   = 16 << 20 // in memory, of traces that the spool does not have yet
)

// Recorder makes traces of an agent's decisions and delivers them in the background. Its methods
// may be called from any goroutine. Only Flush, Close, RegisterCard and, with Durable, the
// recording itself wait. A trace stays in the spool until ingest has answered for it. The agent's
// next recorder, in any language, delivers what a process leaves there.
type Recorder struct {
	config    RecorderConfig
	publisher *Publisher
	options   json.Options
	reports   reports
	spool     *spool // of goroutine write
	current   *batch // of goroutine write: the batch that grows

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[string]*sessionState
	begun    uint64 // sessions, in all
	queue    []item
	queued   int      // bytes in queue
	flush    bool     // Flush waits: cut the current batch
	batches  []*batch // in the order of delivery; only goroutine deliver removes the first
	kept     int64    // bytes of this recorder's batches
	memory   int64    // the part of kept that is in no file
	entered  int      // items ever put into queue
	finished int      // items that ingest has answered for, or that were dropped
	waiting  int      // traces among the others
	stats    Stats
	changed  chan struct{} // closed and replaced when finished or batches change

	wake chan struct{} // for write
	kick chan struct{} // for deliver: Flush does not wait for a pause to end
	most int           // lines of a request; a proxy may take only smaller ones. Of goroutine deliver
}

// item is a line on its way into the spool.
type item struct {
	line   []byte
	trace  bool          // otherwise the end of a session
	stored chan struct{} // closed when the line is on disk or dropped; nil if nobody waits
}

// Stats counts traces.
type Stats struct {
	Recorded, Accepted, Duplicate, Refused, Forbidden, Invalid, Dropped int

	Waiting int // recorded, and without an answer yet
}

// NewRecorder starts a recorder. The error says which setting cannot work. The caller closes it.
func NewRecorder(config RecorderConfig) (*Recorder, error) {
	config.URL = cmp.Or(config.URL, os.Getenv("PLUMBLINE_URL"), defaultURL)
	config.Token = cmp.Or(config.Token, os.Getenv("PLUMBLINE_TOKEN"))
	config.SpoolBytes = cmp.Or(config.SpoolBytes, defaultSpoolBytes)
	for name, id := range map[string]string{"AgentID": config.AgentID, "CardID": config.CardID} {
		if id == "" || len(id) > schema.MaxIDBytes {
			return nil, fmt.Errorf("recorder: %s is %q, want 1 to %d bytes", name, schema.Clip(id, 64), schema.MaxIDBytes)
		}
	}
	config.Token = strings.TrimSpace(config.Token) // it may be from a file that ends with a line feed
	if strings.ContainsFunc(config.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, errors.New("recorder: Token has a character that no token has, such as a space or a line feed")
	}
	if config.Durable && config.Spool == NoSpool {
		return nil, errors.New("recorder: Durable needs a spool")
	}
	if u, err := url.Parse(config.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("recorder: the address of ingest is %q, want http://host:port or https://host:port", config.URL)
	}
	if config.Key != nil && (len(config.Key) != ed25519.PrivateKeySize || config.KeyID == "") {
		return nil, fmt.Errorf("recorder: want a key of %d bytes and its id", ed25519.PrivateKeySize)
	}
	if config.Spool == "" {
		dir, err := defaultSpool()
		if err != nil {
			return nil, fmt.Errorf("recorder: %w: name a directory as Spool", err)
		}
		config.Spool = dir
	}
	if config.Spool != NoSpool { // absolute, because the agent may change its directory
		dir, err := filepath.Abs(config.Spool)
		if err != nil {
			return nil, fmt.Errorf("recorder: %w", err)
		}
		config.Spool = dir
	}
	r := &Recorder{
		config: config, publisher: &Publisher{URL: config.URL, Token: config.Token, HTTP: config.HTTP}, options: tolerantJSON(),
		sessions: map[string]*sessionState{}, changed: make(chan struct{}), wake: make(chan struct{}, 1), kick: make(chan struct{}, 1), most: batchLines,
		reports: reports{onError: config.OnError, onWarning: config.OnWarning},
	}
	r.spool = newSpool(config.Spool, config.AgentID)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.takeOver()
	r.ended.Go(func() { r.guarded(r.write) })
	r.ended.Go(func() { r.guarded(r.deliver) })
	return r, nil
}

func defaultSpool() (string, error) {
	if dir := os.Getenv("PLUMBLINE_SPOOL"); dir != "" {
		return dir, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "plumbline", "spool"), nil
}

// RecordTrace records a trace that was built elsewhere, with its own session and number. It is
// signed if the recorder has a key. If the bytes are not a valid trace of
// the agent, the error is a *schema.Refusal, and OnError gets it, too.
func (r *Recorder) RecordTrace(raw []byte) error {
	defer r.recovered()
	trace, err := schema.Admit(r.config.AgentID, raw)
	if err != nil {
		r.invalid("", err)
		return err
	}
	line := trace.Raw
	if bytes.IndexByte(line, '\n') >= 0 {
		compact := jsontext.Value(bytes.Clone(line))
		if err := compact.Compact(); err != nil {
			r.invalid(trace.TraceID, err)
			return err
		}
		line = compact
	}
	r.put(bytes.Clone(line), true)
	return nil
}

// RegisterCard registers the agent's card and waits for the answer; created is false if the card
// was registered before.
func (r *Recorder) RegisterCard(ctx context.Context, cardID string, card []byte) (created bool, err error) {
	return r.publisher.PutCard(ctx, cardID, card)
}

// invalid reports something that is no trace.
func (r *Recorder) invalid(traceID string, err error) {
	r.count(func(s *Stats) { s.Invalid++ })
	e := &RecordError{Kind: KindInvalid, Message: err.Error(), TraceID: traceID}
	if refusal, ok := errors.AsType[*schema.Refusal](err); ok {
		e.Faults = refusal.Faults
	}
	r.reports.report(e)
}

// put hands a line to the goroutine that writes the spool. With Durable it waits until the line
// is on disk.
func (r *Recorder) put(line []byte, trace bool) {
	i := item{line: line, trace: trace}
	if r.config.Durable && trace {
		i.stored = make(chan struct{})
	}
	r.mu.Lock()
	why := ""
	switch {
	case r.closed:
		why = "the recorder is closed"
	case r.queued+len(line) > maxWaitingBytes:
		why = "the traces that the spool does not have yet use up their memory"
	}
	if trace {
		r.stats.Recorded++
	}
	if why != "" {
		r.mu.Unlock()
		if trace {
			r.dropped(1, why)
		}
		return
	}
	r.queue, r.queued, r.entered = append(r.queue, i), r.queued+len(line), r.entered+1
	if trace {
		r.waiting++
	}
	r.mu.Unlock()
	r.stir()
	if i.stored != nil {
		<-i.stored
	}
}

// stir wakes the goroutine that writes the spool.
func (r *Recorder) stir() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

func (r *Recorder) dropped(n int, why string) {
	r.count(func(s *Stats) { s.Dropped += n })
	r.reports.report(&RecordError{Kind: KindDropped, Message: why, Count: n})
}

func (r *Recorder) count(change func(*Stats)) {
	r.mu.Lock()
	change(&r.stats)
	r.mu.Unlock()
}

// Stats returns the counts so far.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Waiting = r.waiting
	return s
}

// Flush waits until ingest has answered for everything recorded so far. The error is that of ctx,
// with the number of traces that wait.
func (r *Recorder) Flush(ctx context.Context) error {
	r.mu.Lock()
	target := r.entered
	r.flush = true
	r.mu.Unlock()
	r.stir()
	select {
	case r.kick <- struct{}{}:
	default: // an attempt is due already
	}
	for {
		r.mu.Lock()
		left, waiting, changed := target-r.finished, r.waiting, r.changed
		r.mu.Unlock()
		if left <= 0 {
			return nil
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return errors.New("flush: the recorder is closed")
		case <-ctx.Done():
			return fmt.Errorf("flush: %d traces wait for ingest: %w", waiting, ctx.Err())
		}
	}
}

// Close is Flush, and then stops the recorder. What ingest has not answered for stays in the
// spool, for the agent's next recorder.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	twice := r.closed
	r.closed = true
	r.mu.Unlock()
	if twice {
		return nil
	}
	err := r.Flush(ctx)
	r.cancel()
	r.stir()
	r.ended.Wait()
	lost := 0
	for _, b := range r.batches {
		if b.path == "" {
			lost += b.left()
		}
	}
	if lost > 0 {
		r.mu.Lock()
		r.waiting -= lost
		r.mu.Unlock()
		r.dropped(lost, "the recorder was closed, and no spool keeps them")
	}
	r.spoolFailed("leave", r.spool.leave())
	r.reports.last()
	return err
}

// signed signs a trace if there is a key.
func (r *Recorder) signed(i *item) ([]byte, error) {
	if !i.trace || r.config.Key == nil {
		return i.line, nil
	}
	return signature.Signed(i.line, r.config.KeyID, r.config.Key)
}

// guarded runs a goroutine of the recorder. A panic in it must not end the agent: it runs again.
func (r *Recorder) guarded(run func()) {
	for ended := false; !ended; {
		func() {
			defer r.recovered()
			run()
			ended = true
		}()
		if !ended {
			r.sleep(time.Second)
		}
	}
}

// sleep waits, and reports whether the recorder still runs.
func (r *Recorder) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// recovered reports a panic.
func (r *Recorder) recovered() {
	if fault := recover(); fault != nil {
		r.reports.report(&RecordError{Kind: KindInternal, Message: fmt.Sprint(fault)})
	}
}
