package opledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/ledger"
)

// Walk reads the files of the ledger in dir in order. Another process may append to the last one
// meanwhile. Walk calls entry with each entry. It calls fault with the first fault of each file
// and for each missing file. It also passes the entries after a fault to entry, without checking
// them.
func Walk(dir string, entry func(*Placed) error, fault func(file string, err error)) error {
	numbers, err := fileNumbers(dir)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	var before *ledger.Summary
	next := uint64(1)
	for _, number := range numbers {
		name := fileName(number)
		if number != next {
			fault(fileName(next), fmt.Errorf("the file is missing, but %s exists", name))
			before = nil
		}
		next = number + 1
		w := walker{validator: new(ledger.Validator), number: number, entry: entry}
		if err := w.read(dir); err != nil {
			return err
		}
		if before = w.conclude(before); w.fault != nil {
			fault(name, w.fault)
		}
	}
	return nil
}

// Last passes the entries of the ledger's files in dir to wanted, from the newest file back to
// the first that has an entry for which wanted returns true. It does not check them.
func Last(dir string, wanted func(*Placed) bool) error {
	numbers, err := fileNumbers(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, number := range slices.Backward(numbers) {
		found := false
		w := walker{validator: new(ledger.Validator), number: number, entry: func(p *Placed) error {
			found = wanted(p) || found
			return nil
		}}
		if err := w.read(dir); err != nil {
			return err
		}
		if found {
			return nil
		}
	}
	return err
}

// fileNumbers returns the numbers of the ledger's files, in order.
func fileNumbers(dir string) (numbers []uint64, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		var number uint64
		if _, err := fmt.Sscanf(entry.Name(), "ledger-%d.jsonl", &number); err == nil && fileName(number) == entry.Name() && number > 0 {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// walker reads one file.
type walker struct {
	validator *ledger.Validator
	number    uint64
	entry     func(*Placed) error
	fault     error
}

// conclude checks that the file continues the one before it, which is nil where it is not known.
// It returns the summary that the next file must continue.
func (w *walker) conclude(before *ledger.Summary) *ledger.Summary {
	if w.fault == nil {
		w.fault = w.validator.Continues(before)
	}
	summary := w.validator.Summary()
	if w.fault == nil && before == nil && w.number == 1 && summary.ContinuesFrom != nil {
		w.fault = fmt.Errorf("it continues from %s, but there is no file before it", summary.ContinuesFrom)
	}
	if w.fault != nil {
		return nil
	}
	return &summary
}

// completeLines yields the complete lines of a file, without their ends. An incomplete last line is
// still being written, or was when its writer ended.
func completeLines(file io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		reader := bufio.NewReaderSize(file, 64<<10)
		for {
			line, err := reader.ReadBytes('\n')
			if errors.Is(err, io.EOF) || !yield(bytes.TrimSuffix(line, []byte("\n")), err) || err != nil {
				return
			}
		}
	}
}

// read passes on the entries of the file.
func (w *walker) read(dir string) (err error) {
	name := fileName(w.number)
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("read the ledger %s: %w", name, err)
		}
	}()
	for line, err := range completeLines(file) {
		if err != nil {
			return err
		}
		var e *ledger.Entry
		if w.fault == nil {
			e, w.fault = w.validator.Add(line)
		}
		if w.fault != nil {
			if e, err = ledger.ParseEntry(line); err != nil {
				continue // the fault of the file is reported
			}
		}
		placed := Placed{Entry: *e, File: w.number}
		if err := placed.place(); err != nil && w.fault == nil {
			w.fault = fmt.Errorf("seq %d: its data is not that of an event: %w", e.Seq, err)
		}
		if err := w.entry(&placed); err != nil {
			return err
		}
	}
	return nil
}

// Event returns the event of an entry other than GENESIS.
func (p *Placed) Event() (Event, error) {
	var r record
	if err := json.Unmarshal(p.Data, &r); err != nil {
		return Event{}, fmt.Errorf("seq %d: its data is not that of an event: %w", p.Seq, err)
	}
	return Event{Type: p.Type, ID: r.ID, Data: r.Event, Stream: r.Stream, Sequence: r.Sequence, Received: r.At}, nil
}
