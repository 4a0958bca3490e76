package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// Consumer is the name of the floor's consumer of stream TRACES. Its ack floor is how far the floor is.
const Consumer = "floor"

const traces = "TRACES"

// A block is stored when it has blockRows rows, or when its first row has waited for blockAge and no
// earlier block is being stored.
const (
	blockRows = 50_000
	blockAge  = 250 * time.Millisecond
	prefetch  = 20_000 // messages
	unacked   = 400_000
)

// Servers are the addresses of broker and database, with the rights of an administrator.
type Servers struct{ NATSURL, ClickHouseDSN string }

// loop is the running floor: its connections.
type loop struct {
	conn   *nats.Conn
	stream jetstream.Stream
	db     driver.Conn
}

// open connects. The caller calls close, also after an error.
func (s Servers) open(ctx context.Context) (l *loop, err error) {
	l = new(loop)
	options, err := clickhouse.ParseDSN(s.ClickHouseDSN)
	if err != nil {
		return l, err
	}
	if l.db, err = clickhouse.Open(options); err != nil {
		return l, err
	}
	if l.conn, err = nats.Connect(s.NATSURL, nats.Name("floor")); err != nil {
		return l, err
	}
	js, err := jetstream.New(l.conn)
	if err != nil {
		return l, err
	}
	l.stream, err = js.Stream(ctx, traces)
	return l, err
}

func (l *loop) close() (err error) {
	if l.conn != nil {
		l.conn.Close()
	}
	if l.db != nil {
		err = l.db.Close()
	}
	return err
}

// Prepare creates the floor's table and its consumer, as both exist for a verifier before it starts. An earlier
// consumer begins again.
func (s Servers) Prepare(ctx context.Context) error {
	l, err := s.open(ctx)
	if err == nil {
		err = create(ctx, l.db)
	}
	if err == nil {
		err = l.consumer(ctx)
	}
	if err = errors.Join(err, l.close()); err != nil {
		return fmt.Errorf("prepare the floor: %w", err)
	}
	return nil
}

func (l *loop) consumer(ctx context.Context) error {
	if err := l.stream.DeleteConsumer(ctx, Consumer); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	_, err := l.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: Consumer, AckPolicy: jetstream.AckAllPolicy, AckWait: time.Minute, MaxAckPending: unacked,
	})
	return err
}

// Rows returns how many rows are stored.
func (s Servers) Rows(ctx context.Context) (rows uint64, err error) {
	l, err := s.open(ctx)
	if err == nil {
		err = l.db.QueryRow(ctx, "SELECT count() FROM floor").Scan(&rows)
	}
	if err = errors.Join(err, l.close()); err != nil {
		return 0, fmt.Errorf("count the rows of the floor: %w", err)
	}
	return rows, nil
}

// Run stores traces until ctx ends.
func (s Servers) Run(ctx context.Context) error {
	l, err := s.open(ctx)
	if err == nil {
		err = l.run(ctx)
	}
	if err = errors.Join(err, l.close()); err != nil {
		return fmt.Errorf("run the floor: %w", err)
	}
	return nil
}

// run stores one block after the other while the client library fills the next one.
func (l *loop) run(ctx context.Context) error {
	consumer, err := l.stream.Consumer(ctx, Consumer)
	if err != nil {
		return err
	}
	next := newFilling(l.stream.CachedInfo().Created)
	reading, err := consumer.Consume(next.take, jetstream.PullMaxMessages(prefetch))
	if err != nil {
		return err
	}
	defer reading.Stop()
	defer next.end()
	spare := new(block)
	tick := time.NewTicker(blockAge / 25)
	defer tick.Stop()
	for {
		select {
		case <-next.full:
		case <-tick.C:
		case <-reading.Closed():
			return errors.New("the broker ended the delivery")
		case <-ctx.Done():
			return nil
		}
		filled, last, err := next.due(spare)
		if err != nil {
			return err
		}
		if filled == nil {
			continue
		}
		if err := filled.insert(ctx, l.db); err != nil {
			return fmt.Errorf("insert into table floor: %w", err)
		}
		if err := last.DoubleAck(ctx); err != nil {
			return fmt.Errorf("acknowledge a block: %w", err)
		}
		spare = filled
	}
}

// filling is the block that messages are added to.
type filling struct {
	created int64         // when the stream was created, in nanoseconds since 1970
	full    chan struct{} // holds one element after the block became full

	mu    sync.Mutex
	room  *sync.Cond // signals that the block is no longer full
	block *block
	since time.Time     // when the first message joined
	last  jetstream.Msg // its ack is the ack of all earlier ones
	fault error
	ended bool
}

func newFilling(created time.Time) *filling {
	f := &filling{created: created.UnixNano(), full: make(chan struct{}, 1), block: new(block)}
	f.room = sync.NewCond(&f.mu)
	return f
}

// take adds a message. It waits while the block is full, and with it waits the delivery.
func (f *filling) take(m jetstream.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.block.len() >= blockRows && !f.ended {
		f.room.Wait()
	}
	meta, err := m.Metadata()
	if err != nil {
		f.fault = err
		return
	}
	partition, _, err := subject.ParseStored(m.Subject())
	if err != nil {
		f.fault = err
		return
	}
	if f.block.len() == 0 {
		f.since = time.Now()
	}
	f.block.add(m.Data(), origin{sequence: meta.Sequence.Stream, partition: uint16(partition), received: meta.Timestamp.UnixNano(), created: f.created})
	if f.last = m; f.block.len() == blockRows {
		select {
		case f.full <- struct{}{}:
		default: // the store has not looked since the last one
		}
	}
}

// due returns the block and its last message if it is full or old enough, and goes on with spare.
func (f *filling) due(spare *block) (*block, jetstream.Msg, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.block
	if f.fault != nil || b.len() == 0 || b.len() < blockRows && time.Since(f.since) < blockAge {
		return nil, nil, f.fault
	}
	f.block = spare
	f.room.Signal()
	return b, f.last, nil
}

// end lets a waiting delivery end.
func (f *filling) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.room.Signal()
}
