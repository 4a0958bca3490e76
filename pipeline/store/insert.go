package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/pipeline/database"
)

// errInFlight reports that an earlier attempt at the same batch, whose outcome is unknown, is
// still running in the server. The batch must be retried.
var errInFlight = errors.New("an earlier attempt at this batch is still running in ClickHouse")

// InsertTraces makes one attempt to store a batch. Traces and verdicts are sent in parallel. Nil
// means that every row is on disk. A *BatchError means that every row is on disk except those in
// its list. After any other error, call again with the same batch: at once if database.Classify
// returns Retry, after a repair if it returns Stop. The next call first looks up the rows that may
// be stored, and sends only the others.
func (w Writer) InsertTraces(ctx context.Context, b *TraceBatch) error {
	var traces, verdicts error
	var both sync.WaitGroup
	both.Go(func() { traces = w.insert(ctx, b.traces) })
	both.Go(func() { verdicts = w.insert(ctx, b.verdicts.block) })
	both.Wait()
	var bad BatchError // returned only when nothing else is left to do
	for _, err := range []error{traces, verdicts} {
		rows, isBatch := errors.AsType[*BatchError](err)
		if err != nil && !isBatch {
			return err
		}
		if isBatch {
			bad.Rows = append(bad.Rows, rows.Rows...)
		}
	}
	if len(bad.Rows) == 0 {
		return nil
	}
	slices.SortStableFunc(bad.Rows, func(a, b BadRow) int { return a.Index - b.Index })
	bad.Rows = slices.CompactFunc(bad.Rows, func(a, b BadRow) bool { return a.Index == b.Index })
	return &bad
}

// InsertVerdicts makes one attempt to store verdicts. It follows the rules of InsertTraces.
func (w Writer) InsertVerdicts(ctx context.Context, b *VerdictBatch) error {
	return w.insert(ctx, b.block)
}

// insert makes one attempt to store a block. It returns at once if all rows of the block are
// stored, except bad ones.
func (w Writer) insert(ctx context.Context, b *block) error {
	if b.done || b.rows.len() == 0 {
		return nil
	}
	rows, err := w.unstored(ctx, b)
	if err != nil {
		return fmt.Errorf("look up what is stored of a batch for %s: %w", b.table, err)
	}
	if len(b.left) > 0 {
		if rows == nil {
			rows = every(b.rows.len())
		}
		rows = slices.DeleteFunc(rows, b.leftOut)
	}
	b.doubt = true // until the attempt succeeds
	bad, err := w.bisect(ctx, b, rows)
	b.unwritten = b.unwritten || errors.Is(err, database.ErrUnwritten)
	if err != nil {
		return fmt.Errorf("insert %d rows into %s: %w", b.rows.len(), b.table, err)
	}
	if len(bad) > 0 {
		return &BatchError{Rows: bad}
	}
	b.doubt, b.done = false, true
	return nil
}

// bisect sends the rows (nil: all). If one of them can never be stored, it halves the rows until
// that row is alone. It returns the bad rows.
func (w Writer) bisect(ctx context.Context, b *block, rows []int) ([]BadRow, error) {
	if rows != nil && len(rows) == 0 {
		return nil, nil
	}
	err := w.send(ctx, b, b.pick(rows))
	if err == nil || database.Classify(err) != database.Split {
		return nil, err
	}
	if rows == nil {
		rows = every(b.rows.len())
	}
	if len(rows) == 1 {
		return []BadRow{{Index: rows[0], Err: err}}, nil
	}
	half := len(rows) / 2
	first, err := w.bisect(ctx, b, rows[:half])
	if err != nil {
		return nil, err
	}
	second, err := w.bisect(ctx, b, rows[half:])
	return append(first, second...), err
}

func every(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// send makes one INSERT of one block. Each INSERT has its own query id, so it can be found among
// the running queries.
func (w Writer) send(ctx context.Context, b *block, fields []field) error {
	if b.id == "" {
		b.id = "plumbline-" + w.db.Config().Stage + "-" + uuid.NewString()
	}
	b.attempts++
	columns := make([]database.Column, len(fields))
	for i, f := range fields {
		columns[i] = database.Column{Name: f.name, Type: f.kind, Values: f.values}
	}
	return w.db.InsertBlock(ctx, b.table, b.id+"-"+strconv.Itoa(b.attempts), b.statement, columns)
}

// BadRow is one row that can never be stored.
type BadRow struct {
	Index int // its position in the batch, in order of Add
	Err   error
}

// BatchError reports that all rows of a batch are stored except these, in rising order of their
// indexes. Traces and verdicts are sent in parallel: either the trace or the verdict of a row in
// this list may be stored.
type BatchError struct {
	Rows []BadRow
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("%d rows can never be stored, the first is row %d: %v", len(e.Rows), e.Rows[0].Index, e.Rows[0].Err)
}

func (e *BatchError) Unwrap() []error {
	reasons := make([]error, len(e.Rows))
	for i := range e.Rows {
		reasons[i] = e.Rows[i].Err
	}
	return reasons
}
