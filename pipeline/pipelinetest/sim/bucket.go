package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Bucket is a key-value bucket of the broker. Its members are valid during an operation.
type Bucket struct {
	Name    string
	Written func(key string, value []byte) // called before each write takes effect; optional

	world   *World
	created time.Time
	writes  []write // the revision is the index plus 1
	newest  map[string]uint64
	changed chan struct{} // closed when something was written
}

type write struct {
	key   string
	value []byte
	at    time.Time
	last  uint64 // the key's previous revision
}

func (w *World) Bucket(name string) *Bucket {
	return &Bucket{Name: name, world: w, created: time.Now(), newest: map[string]uint64{}, changed: make(chan struct{})}
}

// Register writes a key for a client without faults.
func (b *Bucket) Register(key string, value []byte) {
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	revision := b.put(key, value)
	b.world.note(0, fmt.Sprintf("%s %s: revision %d", b.Name, key, revision), none)
}

// Revisions returns all values that a key has had.
func (b *Bucket) Revisions(key string) (values [][]byte) {
	for _, w := range b.writes {
		if w.key == key {
			values = append(values, w.value)
		}
	}
	return values
}

// State returns the state of the stream behind the bucket, as stream.Client.StreamState does.
func (b *Bucket) State() stream.State {
	return stream.State{Created: b.created, LastSequence: uint64(len(b.writes)), Subjects: uint64(len(b.newest))}
}

// Keys returns the existing keys, in order of their first write.
func (b *Bucket) Keys() (keys []string) {
	for _, w := range b.writes {
		if w.last == 0 {
			keys = append(keys, w.key)
		}
	}
	return keys
}

func (b *Bucket) put(key string, value []byte) (revision uint64) {
	if b.Written != nil {
		b.Written(key, value)
	}
	b.writes = append(b.writes, write{key, value, time.Now(), b.newest[key]})
	revision = uint64(len(b.writes))
	b.newest[key] = revision
	close(b.changed)
	b.changed = make(chan struct{})
	return revision
}

// swap writes a key that must still have a revision.
func (b *Bucket) swap(key string, value []byte, last uint64) (revision uint64, err error) {
	if b.newest[key] != last {
		return 0, fmt.Errorf("write %s of bucket %s over revision %d, it has %d: %w", key, b.Name, last, b.newest[key], stream.ErrConflict)
	}
	return b.put(key, value), nil
}

// Keys are the keys of a bucket as a process reads and writes them. The methods are those of
// stream.Bucket.
type Keys struct {
	process *Process
	bucket  *Bucket
}

func (p *Process) Keys(b *Bucket) *Keys { return &Keys{p, b} }

// behind is how long a replica may lag.
const behind = time.Second

// Get simulates stream.Bucket.Get. A replica that lags may answer.
func (k *Keys) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	b := k.bucket
	return k.get(ctx, key, func() uint64 {
		revision := b.newest[key]
		for revision > 0 && time.Since(b.writes[revision-1].at) < behind && b.world.strikes(b.world.dice("replica "+key)) {
			revision = b.writes[revision-1].last
		}
		return revision
	})
}

func (k *Keys) GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	return k.get(ctx, key, func() uint64 { return k.bucket.newest[key] })
}

func (k *Keys) GetMany(ctx context.Context, keys []string, take func(key string, value []byte, revision uint64)) error {
	for _, key := range keys {
		switch value, revision, err := k.Get(ctx, key); {
		case err == nil:
			take(key, value, revision)
		case !errors.Is(err, stream.ErrNotFound):
			return err
		}
	}
	return nil
}

func (k *Keys) get(ctx context.Context, key string, known func() uint64) (value []byte, revision uint64, err error) {
	err = k.process.Do(ctx, Operation{Name: "get " + k.bucket.Name, Key: key}, func() error {
		revision = known()
		if revision == 0 {
			return fmt.Errorf("get %s of bucket %s: %w", key, k.bucket.Name, stream.ErrNotFound)
		}
		value = k.bucket.writes[revision-1].value
		return nil
	})
	return value, revision, err
}

func (k *Keys) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return ask(ctx, k.process, "create "+k.bucket.Name, key, func() (uint64, error) { return k.bucket.swap(key, value, 0) })
}

func (k *Keys) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	return ask(ctx, k.process, "update "+k.bucket.Name, key, func() (uint64, error) { return k.bucket.swap(key, value, last) })
}

func (k *Keys) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return ask(ctx, k.process, "put "+k.bucket.Name, key, func() (uint64, error) { return k.bucket.put(key, value), nil })
}

func (k *Keys) WriteAll(ctx context.Context, writes []stream.Write) (revisions []uint64, err error) {
	revisions = make([]uint64, len(writes))
	order := sorted(len(writes), func(i int) string { return writes[i].Key })
	o := Operation{Name: "write " + k.bucket.Name, Key: writes[order[0]].Key}
	err = k.process.Each(ctx, o, len(writes), func(i int) (err error) {
		w := &writes[order[i]]
		revisions[order[i]], err = k.bucket.swap(w.Key, w.Value, w.Last)
		return err
	})
	return revisions, err
}

// Watch simulates stream.Bucket.Watch for the pattern of all keys.
func (k *Keys) Watch(ctx context.Context, _ string, after uint64, apply func(stream.Change), ready func()) error {
	var once sync.Once
	for seen := after; ; {
		var news []stream.Change
		var changed chan struct{}
		o := Operation{Name: "watch " + k.bucket.Name, Key: fmt.Sprint(seen)}
		err := k.process.Do(ctx, o, func() error {
			b := k.bucket
			for changed = b.changed; seen < uint64(len(b.writes)); seen++ { // the newest state of each key
				if w := b.writes[seen]; b.newest[w.key] == seen+1 {
					news = append(news, stream.Change{Key: w.key, Value: w.value, Revision: seen + 1})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, change := range news {
			apply(change)
		}
		once.Do(ready)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
