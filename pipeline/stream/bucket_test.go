package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func openBucket(t *testing.T, client *stream.Client) *stream.Bucket {
	t.Helper()
	return brokertest.Bucket(t, client, stream.Seals)
}

func TestBucketComparesAndSwaps(t *testing.T) {
	ctx := t.Context()
	bucket := openBucket(t, connect(t, brokertest.New(t)))
	if _, _, err := bucket.Get(ctx, "did=3Aa.s"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	first, err := bucket.Create(ctx, "did=3Aa.s", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Create(ctx, "did=3Aa.s", []byte("other")); !errors.Is(err, stream.ErrConflict) {
		t.Errorf("Create twice: %v", err)
	}
	second, err := bucket.Update(ctx, "did=3Aa.s", []byte("two"), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Update(ctx, "did=3Aa.s", []byte("other"), first); !errors.Is(err, stream.ErrConflict) {
		t.Errorf("Update of an old revision: %v", err)
	}
	if err := bucket.Delete(ctx, "did=3Aa.s", first); !errors.Is(err, stream.ErrConflict) {
		t.Errorf("Delete of an old revision: %v", err)
	}
	value, revision, err := bucket.Get(ctx, "did=3Aa.s")
	if err != nil || string(value) != "two" || revision != second {
		t.Errorf("Get = %q, %d, %v", value, revision, err)
	}
}

func TestBucketDeletesAndLists(t *testing.T) {
	ctx := t.Context()
	bucket := openBucket(t, connect(t, brokertest.New(t)))
	if keys, err := bucket.Keys(ctx); err != nil || len(keys) != 0 {
		t.Errorf("Keys of nothing: %q, %v", keys, err)
	}
	for _, key := range []string{"a.1", "a.2", "b.1", "gone.1"} {
		if _, err := bucket.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	_, revision, err := bucket.Get(ctx, "gone.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.Delete(ctx, "gone.1", revision); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bucket.Get(ctx, "gone.1"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("Get of what was deleted: %v", err)
	}
	checkKeys(t, bucket, nil, "a.1", "a.2", "b.1")
	checkKeys(t, bucket, []string{"a.*"}, "a.1", "a.2")
	if _, err := bucket.Create(ctx, "gone.1", []byte("again")); err != nil {
		t.Errorf("Create of what was deleted: %v", err)
	}
}

func checkKeys(t *testing.T, bucket *stream.Bucket, patterns []string, want ...string) {
	t.Helper()
	keys, err := bucket.Keys(t.Context(), patterns...)
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("Keys(%q) = %q, want %q; error %v", patterns, keys, want, err)
	}
}

func TestBucketWatchSurvivesRestart(t *testing.T) {
	broker := brokertest.New(t)
	bucket := openBucket(t, connect(t, broker))
	put := func(key string) {
		for {
			_, err := bucket.Put(t.Context(), key, []byte(key))
			if err == nil {
				return
			}
			if !errors.Is(err, stream.ErrUnavailable) {
				t.Error(err)
				return
			}
		}
	}
	put("a")
	put("b")
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- bucket.Watch(ctx, ">", 0, func(c stream.Change) { seen <- c.Key }, func() { seen <- "ready" })
	}()
	expect := func(want ...string) {
		for _, key := range want {
			if got := <-seen; got != key {
				t.Errorf("seen %q, want %q", got, key)
			}
		}
	}
	expect("a", "b", "ready")
	broker.Restart()
	put("c")
	expect("c")
	_, revision, err := bucket.Get(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.Delete(t.Context(), "c", revision); err != nil {
		t.Fatal(err)
	}
	expect("c")
	later, end := context.WithCancel(t.Context())
	var after []string
	err = bucket.Watch(later, ">", 1, func(c stream.Change) { after = append(after, c.Key) }, end)
	if !errors.Is(err, context.Canceled) || !slices.Equal(after, []string{"b", "c", "c"}) {
		t.Errorf("after the first revision: %q, %v", after, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ends with %v", err)
	}
}

func TestMatching(t *testing.T) {
	ctx := t.Context()
	bucket, err := connect(t, brokertest.New(t)).Bucket(ctx, stream.Handshakes)
	if err != nil {
		t.Fatal(err)
	}
	matching := func(pattern string, want ...string) {
		t.Helper()
		values, err := bucket.Matching(ctx, pattern, 100)
		if got := fmt.Sprintf("%s", values); err != nil || got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %s; error %v", pattern, got, want, err)
		}
	}
	matching("a.*")
	for _, key := range []string{"a.2", "b.1", "a.gone", "a.1", "a.1.deeper"} {
		if _, err := bucket.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	_, revision, err := bucket.Get(ctx, "a.gone")
	if err == nil {
		err = bucket.Delete(ctx, "a.gone", revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	matching("a.*", "a.2", "a.1")
	if values, err := bucket.Matching(ctx, "a.*", 1); err != nil || fmt.Sprintf("%s", values) != "[a.2]" {
		t.Errorf("the earliest alone: %s, %v", values, err)
	}
	matching("c.*")
	if _, err := bucket.Put(ctx, "a.2", []byte("again")); err != nil {
		t.Fatal(err)
	}
	matching("a.*", "a.1", "again")
}

func TestGetNewest(t *testing.T) {
	ctx := t.Context()
	bucket := openBucket(t, connect(t, brokertest.New(t)))
	if _, _, err := bucket.GetNewest(ctx, "a.1"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := bucket.Create(ctx, "a.1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	value, revision, err := bucket.GetNewest(ctx, "a.1")
	if err != nil || string(value) != "one" {
		t.Errorf("%q, %v", value, err)
	}
	if _, err := bucket.Update(ctx, "a.1", nil, revision); err != nil {
		t.Fatal(err)
	}
	value, revision, err = bucket.GetNewest(ctx, "a.1")
	if err != nil || len(value) != 0 {
		t.Errorf("%q, %v", value, err)
	}
	if err := bucket.Delete(ctx, "a.1", revision); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bucket.GetNewest(ctx, "a.1"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

// WriteAll writes many keys, each with its own compare-and-swap. A key that was changed meanwhile
// is reported, and a stale writer's value is never stored.
func TestBucketWritesManyAtOnce(t *testing.T) {
	for name, atomic := range map[string]bool{"in atomic batches": true, "one by one": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			client := connect(t, brokertest.New(t))
			if !atomic {
				client.ForbidBatches(t, "KV_"+stream.Seals)
			}
			bucket := openBucket(t, client)
			writes := make([]stream.Write, 1500) // more than one batch holds
			for i := range writes {
				writes[i] = stream.Write{Key: fmt.Sprintf("a.%d", i), Value: []byte("one")}
			}
			revisions, err := bucket.WriteAll(ctx, writes)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{0, 999, 1000, 1499} {
				if _, revision, err := bucket.Get(ctx, writes[i].Key); err != nil || revision != revisions[i] {
					t.Errorf("%s has revision %d, want %d (%v)", writes[i].Key, revision, revisions[i], err)
				}
			}
			newest, err := bucket.Update(ctx, "a.1", []byte("another's"), revisions[1])
			if err != nil {
				t.Fatal(err)
			}
			stale := []stream.Write{{Key: "a.0", Value: []byte("two"), Last: revisions[0]}, {Key: "a.1", Value: []byte("two"), Last: revisions[1]}}
			if _, err := bucket.WriteAll(ctx, stale); !errors.Is(err, stream.ErrConflict) {
				t.Errorf("a stale writer got: %v", err)
			}
			if value, revision, err := bucket.Get(ctx, "a.1"); err != nil || string(value) != "another's" || revision != newest {
				t.Errorf("Get = %q, %d, %v", value, revision, err)
			}
			if _, err := bucket.WriteAll(ctx, []stream.Write{{Key: "a.1", Value: []byte("new")}}); !errors.Is(err, stream.ErrConflict) {
				t.Errorf("a key that exists, as if new: %v", err)
			}
		})
	}
}

// However slowly changes are applied, the client library drops none of them: by default it does when more
// than 64 MiB or half a million messages wait, and a watch that is too slow begins again, for ever.
func TestWatchDropsNothing(t *testing.T) {
	messages, bytes, err := openBucket(t, connect(t, brokertest.New(t))).WatchLimits(t.Context())
	if err != nil || messages >= 0 || bytes >= 0 {
		t.Errorf("of a watch at most %d messages and %d bytes may wait, %v", messages, bytes, err)
	}
}

// GetMany finds what exists, without removed keys, and refuses too many keys by leaving them out.
func TestBucketGetsMany(t *testing.T) {
	ctx := t.Context()
	bucket := openBucket(t, connect(t, brokertest.New(t)))
	revisions := map[string]uint64{}
	var keys []string
	for i := range 1100 {
		keys = append(keys, fmt.Sprintf("a.%d", i))
	}
	for _, key := range keys[:300] {
		revision, err := bucket.Put(ctx, key, []byte("old "+key))
		if err != nil {
			t.Fatal(err)
		}
		if revision, err = bucket.Update(ctx, key, []byte(key), revision); err != nil {
			t.Fatal(err)
		}
		revisions[key] = revision
	}
	if err := bucket.Delete(ctx, "a.7", revisions["a.7"]); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	take := func(key string, value []byte, revision uint64) {
		if string(value) != key || revision != revisions[key] {
			t.Errorf("%s = %q, revision %d", key, value, revision)
		}
		got[key] = revision
	}
	if err := bucket.GetMany(ctx, append(keys[:299:299], "none"), take); err != nil {
		t.Fatal(err)
	}
	if _, removed := got["a.7"]; removed || len(got) != 298 {
		t.Errorf("%d values, the removed one %t; want 298 without it", len(got), removed)
	}
	clear(got)
	if err := bucket.GetMany(ctx, keys[300:400], take); err != nil || len(got) != 0 {
		t.Errorf("of keys that were never written: %d values, error %v", len(got), err)
	}
	for _, key := range keys[300:] {
		if _, err := bucket.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := bucket.GetMany(ctx, keys, take); err != nil || len(got) != 0 {
		t.Errorf("of more keys than the server answers: %d values, error %v", len(got), err)
	}
	large := make([]byte, 512<<10)
	for _, key := range keys[:20] {
		if _, err := bucket.Put(ctx, key, large); err != nil {
			t.Fatal(err)
		}
	}
	some := 0
	if err := bucket.GetMany(ctx, keys[:20], func(string, []byte, uint64) { some++ }); err != nil || some == 0 || some == 20 {
		t.Errorf("of more bytes than the server sends: %d values, error %v; want some", some, err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := bucket.GetMany(short, keys[:20], take); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
