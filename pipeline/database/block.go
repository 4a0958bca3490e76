package database

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Column is one column of a block that is inserted. Type is the type that it must have in the live
// table.
type Column struct {
	Name, Type string
	Values     Values
}

// Values are the rows of a column.
type Values interface {
	Rows() int
	// Encode writes the rows in ClickHouse's native format.
	Encode(w *BlockWriter) error
}

// InsertBlock is one attempt at an INSERT of one block: columns of the same number of rows, in the
// order of the statement. It returns nil only if all rows were written (see Insert).
//
// The driver asks and reads the answer, and the rows go past it: its own columns and its buffer
// would each hold a copy of the block.
func (d *DB) InsertBlock(ctx context.Context, table, queryID, statement string, columns []Column) error {
	l, err := d.lanes.take(ctx)
	if err != nil {
		return err
	}
	defer func() { d.lanes.free <- l }()
	i, err := d.begin(ctx, l, table, columns[0].Values.Rows(), queryID, statement)
	if err != nil {
		return err
	}
	defer func() { _ = i.Close() }() // after Send there is nothing to close
	if err := sameTypes(table, columns, i.Columns()); err != nil {
		return err
	}
	if err := l.write(i.ctx, columns); err != nil {
		return fmt.Errorf("send %d rows: %w", columns[0].Values.Rows(), err)
	}
	return i.Send()
}

func sameTypes(table string, columns []Column, live []column.Interface) error {
	for i, c := range columns {
		if got := string(live[i].Type()); got != c.Type {
			return fmt.Errorf("%w: column %s.%s is %s, want %s", ErrDeployment, table, c.Name, got, c.Type)
		}
	}
	return nil
}

// blockLanes is how many blocks are inserted at a time: traces and their verdicts, and in the
// meantime verdicts of traces whose card came late.
const blockLanes = 4

// lanes are the connections that insert blocks. A lane is used by one INSERT at a time.
type lanes struct {
	all  []*lane
	free chan *lane
}

func newLanes(options *clickhouse.Options) (lanes, error) {
	s := lanes{free: make(chan *lane, blockLanes)}
	for range blockLanes {
		l, err := newLane(options)
		if err != nil {
			return s, errors.Join(err, s.close())
		}
		s.all = append(s.all, l)
		s.free <- l
	}
	return s, nil
}

func (s *lanes) take(ctx context.Context) (*lane, error) {
	select {
	case l := <-s.free:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *lanes) close() error {
	var faults []error
	for _, l := range s.all {
		faults = append(faults, l.Close())
	}
	return errors.Join(faults...)
}

// lane is a pool of one connection, of which it knows the net.Conn.
type lane struct {
	driver.Conn
	net    atomic.Pointer[net.Conn]
	writer BlockWriter
}

// newLane prepares a lane. Like the driver, it connects on demand.
func newLane(options *clickhouse.Options) (*lane, error) {
	l := new(lane)
	own := *options
	own.MaxOpenConns, own.MaxIdleConns = 1, 1
	own.DialContext = func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, options, address)
		if err == nil {
			l.net.Store(&conn)
		}
		return conn, err
	}
	if c := options.Compression; c != nil {
		method, ok := compressions[c.Method]
		if !ok {
			return nil, fmt.Errorf("database: no block is compressed with %v", c.Method)
		}
		if c.Method != clickhouse.CompressionNone {
			l.writer.compress = compress.NewWriter(compress.Level(c.Level), method)
		}
	}
	var err error
	l.Conn, err = clickhouse.Open(&own)
	return l, err
}

var compressions = map[clickhouse.CompressionMethod]compress.Method{
	clickhouse.CompressionNone: compress.None, clickhouse.CompressionLZ4: compress.LZ4,
	clickhouse.CompressionLZ4HC: compress.LZ4HC, clickhouse.CompressionZSTD: compress.ZSTD,
}

// dial connects as the driver does when it has no other function for that.
func dial(ctx context.Context, options *clickhouse.Options, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: options.DialTimeout}
	if options.TLS != nil {
		return (&tls.Dialer{NetDialer: &dialer, Config: options.TLS}).DialContext(ctx, "tcp", address)
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// write sends the columns as one block. After an error the connection is closed, because the
// server waits for the rest of the block.
func (l *lane) write(ctx context.Context, columns []Column) error {
	conn := *l.net.Load()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	l.writer.to = conn
	err := l.writer.block(columns)
	if err == nil {
		return nil
	}
	_ = conn.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// BlockWriter writes a block to a connection, piece by piece.
type BlockWriter struct {
	proto.Buffer // of what is not written yet
	to           io.Writer
	compress     *compress.Writer // nil: pieces are not compressed
}

// pieceBytes is about the size of one write. A piece stays in the processor's cache until it is
// sent.
const pieceBytes = 128 << 10

// Spill must be called after each small piece that is put into the buffer. It sends the buffer if
// that is large enough.
func (w *BlockWriter) Spill() error {
	if len(w.Buf) < pieceBytes {
		return nil
	}
	return w.flush(w.compress)
}

func (w *BlockWriter) flush(c *compress.Writer) error {
	piece := w.Buf
	if c != nil && len(piece) > 0 {
		if err := c.Compress(piece); err != nil {
			return fmt.Errorf("compress a block: %w", err)
		}
		piece = c.Data
	}
	w.Reset()
	_, err := w.to.Write(piece)
	return err
}

// block writes the packet of one block: the form of revision 54454 of the protocol (ClickHouse
// 22.3) and later ones.
func (w *BlockWriter) block(columns []Column) error {
	w.Reset()
	w.PutByte(byte(proto.ClientCodeData))
	w.PutString("") // name of an external table
	if err := w.flush(nil); err != nil {
		return err
	}
	rows := columns[0].Values.Rows()
	proto.BlockInfo{BucketNum: -1}.Encode(&w.Buffer)
	w.PutUVarInt(uint64(len(columns)))
	w.PutUVarInt(uint64(rows))
	for i := range columns {
		c := &columns[i]
		if n := c.Values.Rows(); n != rows {
			return fmt.Errorf("column %s has %d rows, want %d", c.Name, n, rows)
		}
		w.PutString(c.Name)
		w.PutString(c.Type)
		w.PutBool(false) // the usual serialization
		if err := c.Values.Encode(w); err != nil {
			return fmt.Errorf("encode column %s: %w", c.Name, err)
		}
		if err := w.Spill(); err != nil {
			return err
		}
	}
	return w.flush(w.compress)
}
