package store

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// proxy is between the store and ClickHouse. Once armed, it interrupts the first connection that
// has sent trigger bytes.
type proxy struct {
	listener net.Listener
	server   string
	armed    atomic.Bool
	answers  bool   // let the server's answers pass after the trigger
	onInsert func() // called once when the trigger is reached
	wg       sync.WaitGroup
}

// trigger is more than queries and verdicts send, and less than the traces.
const trigger = 768 << 10

func startProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{proxy: p, client: client, server: server}
		p.wg.Go(l.questions)
		p.wg.Go(l.replies)
	}
}

// link is one connection through the proxy.
type link struct {
	*proxy
	client, server net.Conn
	mute           atomic.Bool // the server's answers are dropped
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) questions() {
	defer l.close()
	sent, chunk := 0, make([]byte, 32<<10)
	for {
		n, err := l.client.Read(chunk)
		if l.armed.Load() {
			sent += n
		} else {
			sent = 0
		}
		if sent > trigger && l.armed.CompareAndSwap(true, false) {
			l.mute.Store(true)
			if !l.answers {
				l.onInsert()
				return // the rest of the block never arrives
			}
			l.wg.Go(func() {
				l.onInsert()
				l.close()
			})
		}
		if _, werr := l.server.Write(chunk[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (l *link) replies() {
	defer l.close()
	chunk := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(chunk)
		if l.mute.Load() {
			n = 0
		}
		if _, werr := l.client.Write(chunk[:n]); err != nil || werr != nil {
			return
		}
	}
}

// TestAmbiguousInsertLosesAndDoublesNothing cuts the connection in the middle of an INSERT, and
// in a second case after ClickHouse has stored it and before it has answered.
func TestAmbiguousInsertLosesAndDoublesNothing(t *testing.T) {
	const rows = 1000
	for name, applied := range map[string]bool{"not applied": false, "applied": true} {
		t.Run(name, func(t *testing.T) {
			direct, dsn := open(t)
			p, throughProxy := startProxy(t, dsn)
			s := openDSN(t, throughProxy)
			p.answers = applied
			p.onInsert = func() {
				if applied {
					await(t, direct, "SELECT count() = 1000 FROM traces")
				}
			}
			b := batchOf(s, manyTraces(t, rows)...)
			p.armed.Store(true)
			err := s.InsertTraces(t.Context(), b)
			if err == nil || database.Classify(err) != database.Retry {
				t.Fatalf("the insert whose connection was cut returned %v", err)
			}
			if _, typed := errors.AsType[*clickhouse.Exception](err); typed {
				t.Fatalf("the outcome of the insert was known: %v", err)
			}
			stored := one[uint64](t, direct, "SELECT count() FROM traces")
			if applied != (stored == rows) {
				t.Fatalf("the first attempt stored %d rows", stored)
			}
			retry(t, s, b)
			if c := counts(t, direct); c.Traces != rows || c.TraceRows != rows || c.Verdicts != rows {
				t.Errorf("%+v, want %d of each", c, rows)
			}
			if n := one[uint64](t, direct, "SELECT count() FROM verdicts"); n != rows {
				t.Errorf("%d verdict rows", n)
			}
		})
	}
}

func manyTraces(t testing.TB, n int) []*schema.Trace {
	t.Helper()
	traces := make([]*schema.Trace, n)
	for i := range traces {
		traces[i] = numbered(t, i)
	}
	return traces
}

// retry does what a stage does: it sends the same batch until it is stored.
func retry(t *testing.T, s *Store, b *TraceBatch) {
	t.Helper()
	for {
		err := s.InsertTraces(t.Context(), b)
		if err == nil {
			return
		}
		if database.Classify(err) != database.Retry || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// await repeats a query until it returns true.
func await(t *testing.T, s *Store, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		var yes bool
		if err := s.db.QueryRow(ctx, query).Scan(&yes); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("await %s: %v", query, err)
			return
		}
		if yes {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// If an earlier attempt may still be running, the store waits for it and does not write again.
func TestRunningAttemptIsWaitedFor(t *testing.T) {
	s, _ := open(t)
	b := batchOf(s, numbered(t, 1))
	b.traces.id, b.traces.attempts, b.traces.doubt = "plumbline-test-running", 1, true

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.db.Exec(clickhouse.Context(ctx, clickhouse.WithQueryID(b.traces.id+"-1")),
			"SELECT sleepEachRow(1) FROM numbers(3600) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null")
	}()
	await(t, s, "SELECT count() = 1 FROM system.processes WHERE query_id = 'plumbline-test-running-1'")
	if err := s.InsertTraces(t.Context(), b); !errors.Is(err, errInFlight) || database.Classify(err) != database.Retry {
		t.Errorf("while an attempt runs: %v", err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the attempt ended by itself")
	}
	await(t, s, "SELECT count() = 0 FROM system.processes WHERE query_id = 'plumbline-test-running-1'")
	insert(t, s, b)
	if c := counts(t, s); c.TraceRows != 1 || c.Verdicts != 1 {
		t.Errorf("%+v", c)
	}
}
