package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outside is the external service that the items of a test need.
type outside struct {
	mu      sync.Mutex
	faults  map[string]error // by item; "" applies to all items
	done    []string
	tried   int
	failed  int
	waiting int
	log     bytes.Buffer
}

func (o *outside) process(_ context.Context, item *string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried++
	if err := errors.Join(o.faults[""], o.faults[*item]); err != nil {
		return err
	}
	o.done = append(o.done, *item)
	return nil
}

func (o *outside) fault(item string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults[item] = err
}

func (o *outside) wait(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = n
}

func (o *outside) got() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(o.done)
	return slices.Clone(o.done)
}

// list opens a list in a directory.
func (o *outside) list(t *testing.T, dir string) *List[string] {
	t.Helper()
	if o.faults == nil {
		o.faults = map[string]error{}
	}
	l := &List[string]{Name: "them", Dir: dir, Process: o.process, Log: slog.New(slog.NewTextHandler(&o.log, nil)),
		Failed: func() { o.failed++ }, Waiting: o.wait}
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *List[string], items ...string) {
	t.Helper()
	if err := l.Add(items...); err != nil {
		t.Fatal(err)
	}
}

// demand requires the given state of the items.
func (o *outside) demand(t *testing.T, l *List[string], waiting int, done ...string) {
	t.Helper()
	if got := o.got(); !slices.Equal(got, done) {
		t.Errorf("processed %q, want %q", got, done)
	}
	if l.Len() != waiting || o.waiting != waiting {
		t.Errorf("%d wait, Waiting was called with %d; want %d", l.Len(), o.waiting, waiting)
	}
}

// An added item survives a restart until it is done.
func TestItemsSurviveARestart(t *testing.T) {
	var o outside
	dir := t.TempDir()
	add(t, o.list(t, dir), "a", "b")
	l := o.list(t, dir)
	o.demand(t, l, 2)
	o.fault("b", errors.New("not now"))
	if done, failed := l.round(t.Context(), false); done != 1 || !failed {
		t.Errorf("%d done, failed %v", done, failed)
	}
	l = o.list(t, dir)
	o.demand(t, l, 1, "a")
	o.fault("b", nil)
	if done, failed := l.round(t.Context(), false); done != 1 || failed {
		t.Errorf("%d done, failed %v", done, failed)
	}
	o.demand(t, o.list(t, dir), 0, "a", "b")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func TestItemAddedTwiceWaitsOnce(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	add(t, l, "a", "b")
	add(t, l, "a", "b")
	add(t, l)
	o.demand(t, l, 2)
}

// While the service is unavailable, the list does not try every item, and logs one line about the
// failure and one about the recovery.
func TestUnavailableServiceIsNotFlooded(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	for i := range 10 {
		add(t, l, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
	}
	o.fault("", errors.New("away"))
	for range 3 {
		if done, failed := l.round(t.Context(), false); done != 0 || !failed {
			t.Errorf("%d done, failed %v", done, failed)
		}
	}
	if o.tried != 3*mostFailures || o.failed != 3*mostFailures {
		t.Errorf("%d attempts, %d failures reported", o.tried, o.failed)
	}
	o.fault("", nil)
	if done, failed := l.round(t.Context(), false); done != 20 || failed {
		t.Errorf("%d done, failed %v", done, failed)
	}
	if n := strings.Count(o.log.String(), "\n"); n != 2 || !strings.Contains(o.log.String(), "error=away") {
		t.Errorf("the log has %d lines:\n%s", n, &o.log)
	}
}

// A stuck item is logged once and does not block the others.
func TestStuckItemsDoNotBlockOthers(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	for i := range 2 * mostFailures {
		item := fmt.Sprint("stuck", i)
		add(t, l, item)
		o.fault(item, fmt.Errorf("%w: %s", ErrStuck, item))
	}
	add(t, l, "good")
	for range 3 {
		if _, failed := l.round(t.Context(), true); failed {
			t.Error("a stuck item counts as a failure of all")
		}
	}
	o.demand(t, l, 2*mostFailures, "good")
	if n := strings.Count(o.log.String(), "level=ERROR"); n != 2*mostFailures {
		t.Errorf("%d lines:\n%s", n, &o.log)
	}
	if want := 2*mostFailures + 1; o.tried != want {
		t.Errorf("tried %d times, want %d", o.tried, want)
	}
	l.stuck[`"stuck0"`] = time.Now().Add(-longestPause)
	o.fault("stuck0", nil)
	l.round(t.Context(), true)
	o.demand(t, l, 2*mostFailures-1, "good", "stuck0")
}

// Nothing is tried while Ready returns an error. No item leaves the list before Done was
// called with it.
func TestReadyAndDone(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	add(t, l, "a", "b")
	fault := errors.New("the bucket is missing")
	l.Ready = func(context.Context) error { return fault }
	l.Done = func(context.Context, []string) error { return fault }
	if done, failed := l.round(t.Context(), false); done != 0 || !failed || o.tried != 0 {
		t.Errorf("%d done, failed %v, %d tried", done, failed, o.tried)
	}
	if done, failed := l.round(t.Context(), true); done != 0 || !failed {
		t.Errorf("%d done, failed %v", done, failed)
	}
	o.demand(t, l, 2, "a", "b")
	o.done, fault = nil, nil
	l.round(t.Context(), false)
	o.demand(t, l, 0, "a", "b")
}

// Run wakes up for a new item, and continues after a failure.
func TestRun(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	done := make(chan int, 10)
	l.Done = func(_ context.Context, items []string) error { done <- len(items); return nil }
	l.Parallel = 2
	o.fault("later", errors.New("not now"))
	l.Failed = func() { o.fault("later", nil) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	add(t, l, "a")
	await(t, done)
	add(t, l, "later")
	await(t, done)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := o.got(); !slices.Equal(got, []string{"a", "later"}) || l.Len() > 1 { // Run may end before the last item leaves the list
		t.Errorf("processed %q, %d wait", got, l.Len())
	}
}

func await(t *testing.T, done <-chan int) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("no item was done within a minute")
	}
}

// The end of the process does not count as a failure of the service.
func TestEndOfTheProcessIsNoFailure(t *testing.T) {
	var o outside
	l := o.list(t, t.TempDir())
	add(t, l, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	l.Process = func(context.Context, *string) error { cancel(); return ctx.Err() }
	l.round(ctx, false)
	o.demand(t, l, 2)
	if o.failed != 0 || o.log.Len() != 0 {
		t.Errorf("%d failures were reported:\n%s", o.failed, &o.log)
	}
}

func TestDamagedListIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x"+suffix)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &List[string]{Name: "them", Dir: dir}
	if err := l.Open(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want %s named", err, path)
	}
}
