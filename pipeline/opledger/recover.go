package opledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// recover reads the last two files and sets the position after them.
func (b *Book) recover() error {
	b.number, b.tail, b.position = 0, nil, Position{}
	numbers, err := fileNumbers(b.dir)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		if b.number++; b.number != number {
			return fmt.Errorf("the file is missing, but %s exists: restore it from a backup; or move the directory away and keep it, and start again: the ledger is written again from stream LEDGER", fileName(number))
		}
	}
	if b.number > 0 {
		if err := b.removeBlank(); err != nil {
			return err
		}
	}
	if b.number == 0 {
		return nil
	}
	var before *ledger.Summary
	if b.number > 1 {
		b.number--
		summary, err := b.readComplete()
		if err != nil {
			return err
		}
		before = &summary
		b.number++
	}
	return b.readLast(before)
}

// removeBlank removes the last file where a loss of power left it without contents. Its bytes
// were never on the disk, so nothing in it was acknowledged. The file will be begun again.
func (b *Book) removeBlank() error {
	path := filepath.Join(b.dir, fileName(b.number))
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	beginning, err := io.ReadAll(io.LimitReader(file, blankBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if len(beginning) > blankBytes || !durable.Blank(beginning) {
		return nil
	}
	if err := durable.Remove(path); err != nil {
		return err
	}
	if b.number--; b.number == 0 {
		return nil
	}
	return os.Chmod(filepath.Join(b.dir, fileName(b.number)), growing) // it is the last file again
}

// blankBytes is more than the first entry of a file takes.
const blankBytes = 64 << 10

// errCut says that the file was truncated, or that a loss of power left a part of its first
// write.
var errCut = errors.New("it ends within its first entry: restore the file from a backup; " +
	"if it is the newest file, and power was lost when it was created, it had no events yet: remove it")

// readComplete reads a file that is not the last, and makes it read-only. A crash may have
// happened after the next file was begun and before this one was made read-only.
func (b *Book) readComplete() (ledger.Summary, error) {
	file, err := os.Open(filepath.Join(b.dir, fileName(b.number)))
	if err != nil {
		return ledger.Summary{}, err
	}
	defer func() { _ = file.Close() }()
	v, torn, err := b.read(file)
	if err == nil && torn {
		err = errors.New("its last line is incomplete: restore the file from a backup; or move the directory away and keep it, and start again: the ledger is written again from stream LEDGER")
	}
	if err == nil {
		err = file.Chmod(complete)
	}
	return v.Summary(), err
}

// readLast reads the last file, removes a line that a crash left incomplete, and opens the file
// for appending.
func (b *Book) readLast(before *ledger.Summary) error {
	file, err := os.OpenFile(filepath.Join(b.dir, fileName(b.number)), os.O_RDWR, growing)
	if err != nil {
		return err
	}
	v, torn, err := b.read(file)
	if err == nil {
		err = v.Continues(before)
		if err != nil {
			err = fmt.Errorf("%w: a file was changed; move the directory away and keep it, and start again: the ledger is written again from stream LEDGER", err)
		}
	}
	if err == nil && torn {
		err = errors.Join(file.Truncate(b.size), file.Sync())
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	b.file, b.chain = file, v.Chain()
	return nil
}

// read checks the entries of a file and records them. torn reports that bytes follow the last
// complete line; b.size does not include them.
func (b *Book) read(file *os.File) (v *ledger.Validator, torn bool, err error) {
	v = new(ledger.Validator)
	b.size = 0
	for line, err := range completeLines(file) {
		if err != nil {
			return v, false, err
		}
		entry, err := v.Add(line)
		if err != nil {
			return v, false, fmt.Errorf("%w: the file was changed; move the directory away and keep it, and start again: the ledger is written again from stream LEDGER", err)
		}
		placed := Placed{Entry: *entry, File: b.number}
		if err := placed.place(); err != nil {
			return v, false, fmt.Errorf("seq %d: %w", entry.Seq, err)
		}
		if entry.Type == ledger.Genesis {
			b.began = placed.At
		} else {
			b.position = placed.Position
		}
		b.tail = append(b.tail, placed)
		b.size += int64(len(line) + len("\n"))
	}
	if b.size == 0 {
		return v, false, errCut
	}
	info, err := file.Stat()
	if err != nil {
		return v, false, err
	}
	return v, info.Size() > b.size, nil
}
