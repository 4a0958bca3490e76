package stream_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func openBucket(t *testing.T, client *stream.Client) *stream.Bucket {
	t.Helper()
	bucket, err := client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	return bucket
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
		ended <- bucket.Watch(ctx, ">", func(c stream.Change) { seen <- c.Key }, func() { seen <- "ready" })
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
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ends with %v", err)
	}
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
