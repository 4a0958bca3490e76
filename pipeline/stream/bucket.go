package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Bucket is a key-value bucket. Keys consist of letters, digits, '-', '_', '=', '/' and '.', like
// the tokens of package subject. It is safe for concurrent use.
type Bucket struct {
	name   string
	client *Client
	kv     jetstream.KeyValue
}

// BucketKey returns the key that a message of the stream behind a bucket sets. It returns "" if
// the message belongs to another stream or removes a key.
func BucketKey(bucket string, m *Message) string {
	key, ours := strings.CutPrefix(m.Subject, "$KV."+bucket+".")
	if !ours || m.Header("KV-Operation") != "" {
		return ""
	}
	return key
}

// Bucket opens a bucket that EnsureTopology has created.
func (c *Client) Bucket(ctx context.Context, name string) (*Bucket, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	b := &Bucket{name: name, client: c}
	err := c.unlessRefused(ctx, func(ctx context.Context) (err error) {
		b.kv, err = c.js.KeyValue(ctx, name)
		return classify(err)
	}, b.subjects()...)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, err)
	}
	return b, nil
}

// Get returns a key's value and revision, or ErrNotFound.
func (b *Bucket) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	err = b.do(ctx, "get", key, func(ctx context.Context) error {
		entry, err := b.kv.Get(ctx, key)
		if err == nil {
			value, revision = entry.Value(), entry.Revision()
		}
		return err
	})
	return value, revision, err
}

// GetNewest is like Get, but asks only the leader. It sees every write, of any client, that
// happened before the request. Get may be answered by a replica that lags a little. With
// ErrNotFound it returns the revision of the key's removal, or 0 if the key never existed. Update
// with that revision writes the key.
func (b *Bucket) GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	err = b.do(ctx, "get", key, func(ctx context.Context) error {
		m, err := b.ask(ctx, question{Last: b.subject(key)})
		value, revision = m.Data, m.Sequence
		if err == nil && m.removal() {
			value, err = nil, jetstream.ErrKeyDeleted
		}
		return err
	})
	return value, revision, err
}

// Matching returns the values of the keys that match a pattern such as "agent.*", earliest first,
// at most `most` of them. The bucket must have no history. Like GetNewest it asks only the
// leader, once for each key.
func (b *Bucket) Matching(ctx context.Context, pattern string, most int) (values [][]byte, err error) {
	err = b.do(ctx, "read", pattern, func(ctx context.Context) error {
		for next := uint64(1); len(values) < most; {
			m, err := b.ask(ctx, question{Next: b.subject(pattern), From: next})
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			if !m.removal() {
				values = append(values, m.Data)
			}
			next = m.Sequence + 1
		}
		return nil
	})
	return values, err
}

func (b *Bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// subjects returns parts of the bucket's own subjects and of the subjects of requests about it.
func (b *Bucket) subjects() []string { return []string{b.subject(""), "KV_" + b.name} }

// question asks for one message of the stream behind a bucket.
type question struct {
	Last string `json:"last_by_subj,omitempty"` // the last one of a subject
	Next string `json:"next_by_subj,omitempty"` // the first one of a subject, at or after the sequence From
	From uint64 `json:"seq,omitempty"`
}

// stored is a message of the stream behind a bucket.
type stored struct {
	Sequence uint64 `json:"seq"`
	Header   []byte `json:"hdrs"` // only of a removal
	Data     []byte `json:"data"`
}

func (m *stored) removal() bool { return bytes.Contains(m.Header, []byte("KV-Operation:")) }

// ask sends the question to the leader of the stream.
func (b *Bucket) ask(ctx context.Context, q question) (m stored, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return m, err
	}
	reply, err := b.client.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.KV_"+b.name, text)
	if err != nil {
		return m, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message stored              `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return m, fmt.Errorf("read the broker's answer: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return m, jetstream.ErrKeyNotFound
	case answer.Error != nil:
		return m, answer.Error
	}
	return answer.Message, nil
}

// Create writes a key that must not exist, otherwise it returns ErrConflict. After any other
// error, the write may have happened: read before you try again.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return b.write(ctx, "create", key, func(ctx context.Context) (uint64, error) { return b.kv.Create(ctx, key, value) })
}

// Update writes a key that must still have the revision last, otherwise it returns ErrConflict. 0
// is the revision of a key that never existed. After any other error, the write may have
// happened.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	return b.write(ctx, "update", key, func(ctx context.Context) (uint64, error) { return b.kv.Update(ctx, key, value, last) })
}

// Put writes a key, whatever its value was.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return b.write(ctx, "put", key, func(ctx context.Context) (uint64, error) { return b.kv.Put(ctx, key, value) })
}

func (b *Bucket) write(ctx context.Context, doing, key string, write func(context.Context) (uint64, error)) (revision uint64, err error) {
	err = b.do(ctx, doing, key, func(ctx context.Context) (err error) {
		revision, err = write(ctx)
		return err
	})
	return revision, err
}

// Delete removes a key that must still have the revision last, otherwise it returns ErrConflict.
func (b *Bucket) Delete(ctx context.Context, key string, last uint64) error {
	return b.do(ctx, "delete", key, func(ctx context.Context) error {
		return b.kv.Delete(ctx, key, jetstream.LastRevision(last))
	})
}

// Keys returns the keys that exist. With patterns such as "agent.*" it returns only those that
// match. A replica that lags a little may answer.
func (b *Bucket) Keys(ctx context.Context, patterns ...string) ([]string, error) {
	if len(patterns) == 0 {
		patterns = []string{">"}
	}
	ctx, cancel := b.client.within(ctx, b.client.cfg.Timeout)
	defer cancel()
	lister, err := b.kv.ListKeysFiltered(ctx, patterns...)
	if err != nil {
		return nil, b.fault("list", "keys", err)
	}
	var keys []string
	for key := range lister.Keys() {
		keys = append(keys, key)
	}
	if ctx.Err() != nil { // the list may be cut short
		return nil, b.fault("list", "keys", ctx.Err())
	}
	return keys, nil
}

// do makes one request about a key within Config.Timeout.
func (b *Bucket) do(ctx context.Context, doing, key string, request func(context.Context) error) error {
	if len(key) > subject.MaxBytes {
		return b.tooLong(doing, key)
	}
	ctx, cancel := b.client.within(ctx, b.client.cfg.Timeout)
	defer cancel()
	return b.fault(doing, key, b.client.unlessRefused(ctx, request, b.subjects()...))
}

func (b *Bucket) tooLong(doing, key string) error {
	return fmt.Errorf("%s a key of %d bytes of bucket %s: %w: the limit is %d", doing, len(key), b.name, ErrTooLarge, subject.MaxBytes)
}

func (b *Bucket) fault(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s of bucket %s: %w", doing, key, b.name, b.kind(err))
}

func (b *Bucket) kind(err error) error {
	var api *jetstream.APIError
	switch {
	case isOneOf(err, jetstream.ErrKeyNotFound, jetstream.ErrKeyDeleted):
		return ErrNotFound
	case errors.Is(err, jetstream.ErrKeyExists),
		errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == codeBeingWritten):
		return ErrConflict
	}
	return classify(err)
}

// Write is one write of a key that must still have the revision Last. 0 means that the key was
// never written.
type Write struct {
	Key   string
	Value []byte
	Last  uint64
}

// WriteAll writes different keys, each with its own compare-and-swap, and returns their
// revisions. If the bucket accepts atomic batches, this costs few round trips and disk syncs,
// otherwise the writes are pipelined. If a key has another revision, the error is ErrConflict.
// After any error some of the writes may have happened: read before you try again.
func (b *Bucket) WriteAll(ctx context.Context, writes []Write) (revisions []uint64, err error) {
	ctx, cancel := b.client.within(ctx, b.client.cfg.Timeout)
	defer cancel()
	messages := make([]wire.Message, len(writes))
	for i, w := range writes {
		if len(w.Key) > subject.MaxBytes {
			return nil, b.tooLong("write", w.Key)
		}
		messages[i] = wire.Message{
			Subject: b.subject(w.Key), Data: w.Value,
			// For this attempt only: what the client itself repeats is stored once.
			ID:     nuid.Next(),
			Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(w.Last, 10)}},
		}
	}
	if revisions, err = b.client.publish(ctx, messages); err != nil {
		return nil, fmt.Errorf("write %d keys of bucket %s: %w", len(writes), b.name, b.kind(err))
	}
	return revisions, nil
}

// allowBatches makes the stream behind a new bucket accept atomic batches. The configuration of a
// bucket has no setting for that. With a server that does not support them, keys are written one
// by one.
func (c *Client) allowBatches(ctx context.Context, bucket string) error {
	stream, err := c.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	cfg := stream.CachedInfo().Config
	cfg.AllowAtomicPublish = true
	var refused *jetstream.APIError
	if _, err = c.js.UpdateStream(ctx, cfg); errors.As(err, &refused) && refused.Code == 400 {
		c.cfg.Logger.Debug("the bucket does not support atomic batches", "bucket", bucket, "error", err)
		return nil
	}
	return err
}

// Change is the new state of a key.
type Change struct {
	Key      string
	Value    []byte // nil when Deleted
	Revision uint64
	Deleted  bool
}

// watchPause is the pause between attempts if the broker refuses the watch.
const watchPause = 50 * time.Millisecond

// Watch calls apply with the current state of every key that matches the pattern (">" matches
// all), then ready once, and then apply with each change. If after is not 0, it begins with the
// changes after that revision, oldest first, instead of the current state. It returns the error
// of ctx when ctx ends, an error when the client is closed, or ErrRefused. After a loss of the
// connection it continues with what changed in the meantime.
func (b *Bucket) Watch(ctx context.Context, pattern string, after uint64, apply func(Change), ready func()) error {
	w := watch{bucket: b, pattern: pattern, apply: apply, ready: ready, last: after}
	for {
		err := w.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.client.conn.IsClosed() || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRefused) {
			return err
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
	}
}

// watch is one call of Watch. The client library would resume a watch by itself, but only after
// several missed heartbeats. A new watch resumes at once.
type watch struct {
	bucket  *Bucket
	pattern string
	apply   func(Change)
	ready   func()
	listed  bool   // ready was called
	last    uint64 // the highest revision applied, or that the caller knows; the bucket delivers them in order
}

// run watches until ctx ends or the connection is lost. It subscribes as the library's own watch does,
// but without the library's limit on what waits to be applied: beyond it the library would drop messages
// ("slow consumer"), and ask for all of them again, for ever if applying is slow. The server's flow control
// bounds what waits.
func (w *watch) run(ctx context.Context) error {
	client := w.bucket.client
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	defer cancel()
	defer context.AfterFunc(client.connectedLink(ctx), cancel)()
	defer client.awaitRefusal(end, "CONSUMER.CREATE.KV_"+w.bucket.name, flowControl+"KV_"+w.bucket.name)()
	tooSlow := time.AfterFunc(client.cfg.Timeout, cancel)
	changes := make(chan *nats.Msg)
	sub, err := w.subscribe(ctx, func(m *nats.Msg) {
		select {
		case changes <- m:
		case <-ctx.Done():
		}
	})
	tooSlow.Stop()
	if err != nil {
		return w.bucket.fault("watch", w.pattern, refusedOr(ctx, classify(err)))
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be lost
	left, err := sub.InitialConsumerPending()
	for ctx.Err() == nil && err == nil {
		if left == 0 && !w.listed {
			w.listed = true
			w.ready()
		}
		select {
		case m := <-changes:
			left, err = w.take(m)
		case <-ctx.Done():
			err = nats.ErrDisconnected
		}
	}
	return w.bucket.fault("watch", w.pattern, refusedOr(ctx, classify(err)))
}

func (w *watch) subscribe(ctx context.Context, change nats.MsgHandler) (*nats.Subscription, error) {
	js, err := w.bucket.client.conn.JetStream()
	if err != nil {
		return nil, err
	}
	from := nats.DeliverLastPerSubject() // the current state of each key
	if w.last > 0 {
		from = nats.StartSequence(w.last + 1)
	}
	sub, err := js.Subscribe(w.bucket.subject(w.pattern), change, nats.BindStream("KV_"+w.bucket.name), nats.OrderedConsumer(), from, nats.Context(ctx))
	if err != nil {
		return nil, err
	}
	return sub, sub.SetPendingLimits(-1, -1)
}

// take handles a message of the stream behind the bucket, and returns how many the broker had left to
// deliver.
func (w *watch) take(m *nats.Msg) (left uint64, err error) {
	meta, err := m.Metadata()
	if err != nil {
		return 0, err
	}
	if revision := meta.Sequence.Stream; revision > w.last {
		w.last = revision
		change := Change{Key: strings.TrimPrefix(m.Subject, w.bucket.subject("")), Revision: revision}
		if change.Deleted = m.Header.Get("KV-Operation") != ""; !change.Deleted {
			change.Value = m.Data
		}
		w.apply(change)
	}
	return meta.NumPending, nil
}
