package opledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Book is the ledger on disk. It must be used by one goroutine.
type Book struct {
	dir      string
	name     string // the owner of the ledger
	rotation ledger.Rotation

	file     *os.File // the last file, open for appending; nil before the first event
	number   uint64   // number of the last file
	size     int64    // bytes of the last file that are certainly on disk
	began    time.Time
	chain    ledger.Chain
	position Position
	tail     []Placed // entries of the last two files, as found by Open
}

const (
	growing  fs.FileMode = 0o640
	complete fs.FileMode = 0o440
)

func fileName(number uint64) string { return fmt.Sprintf("ledger-%06d.jsonl", number) }

// verifierName is the file name of the verifier script, which is kept next to the files for
// anyone who receives the directory.
const verifierName = "verify_ledger.py"

// Open opens the ledger in dir, which it creates where missing, and recovers from a crash. name
// is the owner that a new file states. A file that was changed is an error that names the first
// invalid entry: nothing is appended after it.
func Open(dir, name string, rotation ledger.Rotation) (*Book, error) {
	if err := durable.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, verifierName), ledger.Python, 0o644); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	b := &Book{dir: dir, name: name, rotation: rotation}
	if err := b.recover(); err != nil {
		return nil, fmt.Errorf("ledger %s: %w", filepath.Join(dir, fileName(b.number)), err)
	}
	return b, nil
}

// Tail returns the entries that the last two files had at Open. A crash may have prevented their
// rows from being stored.
func (b *Book) Tail() []Placed { return b.tail }

// Position returns how far the stream has been chained.
func (b *Book) Position() Position { return b.position }

// Append chains events in their order and returns the new entries once they are on disk. It skips
// events that are already chained; those of a stream that was created again are other events. After an error the caller must close the book and open it
// again, which shows what reached the disk; then the same events may be appended.
func (b *Book) Append(events []Event) (placed []Placed, err error) {
	events = slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return b.position.Stream.Equal(e.Stream) && e.Sequence <= b.position.Sequence
	})
	for len(events) > 0 && err == nil {
		var some []Placed
		some, events, err = b.appendToFile(events)
		placed = append(placed, some...)
	}
	return placed, err
}

// appendToFile chains as many events as the last file may take, with one sync, and returns the
// others.
func (b *Book) appendToFile(events []Event) (placed []Placed, rest []Event, err error) {
	if b.file == nil || b.rotation.Due(&b.chain, b.began, events[0].Received) {
		genesis, err := b.begin(events[0].Received)
		if err != nil {
			return nil, events, err
		}
		placed = append(placed, genesis)
	}
	chain, position := b.chain, b.position
	var lines []byte
	for rest = events; len(rest) > 0 && !b.rotation.Due(&chain, b.began, rest[0].Received); rest = rest[1:] {
		data, err := rest[0].data()
		if err != nil {
			return placed, rest, err
		}
		entry, err := chain.Append(rest[0].Type, data)
		if err != nil {
			return placed, rest, fmt.Errorf("event %s: %w", rest[0].ID, err)
		}
		lines = entry.AppendLine(lines)
		position = Position{rest[0].Stream, rest[0].Sequence}
		placed = append(placed, Placed{*entry, b.number, rest[0].Received, position})
	}
	if len(lines) > 0 {
		_, err := b.file.WriteAt(lines, b.size) // after the bytes that are certainly on disk
		if err == nil {
			err = b.file.Sync()
		}
		if err != nil {
			return nil, events, fmt.Errorf("write ledger: %w", err)
		}
	}
	b.size += int64(len(lines))
	b.chain, b.position = chain, position
	return placed, rest, nil
}

// begin begins the next file with its GENESIS, and makes the previous file read-only.
func (b *Book) begin(at time.Time) (Placed, error) {
	opening := ledger.Opening{Agent: b.name, Created: at}
	if b.file != nil {
		last := b.chain.Last()
		opening.ContinuesFrom = &last
	}
	data, err := opening.Data()
	if err != nil {
		return Placed{}, err
	}
	var chain ledger.Chain
	entry, err := chain.Append(ledger.Genesis, data)
	if err != nil {
		return Placed{}, err
	}
	line := entry.AppendLine(nil)
	path := filepath.Join(b.dir, fileName(b.number+1))
	if err := durable.WriteFile(path, line, growing); err != nil {
		return Placed{}, fmt.Errorf("begin ledger file: %w", err)
	}
	if b.file != nil {
		if err := errors.Join(b.file.Chmod(complete), b.file.Sync()); err != nil {
			return Placed{}, fmt.Errorf("complete ledger file: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR, growing)
	if err != nil {
		return Placed{}, fmt.Errorf("open ledger file: %w", err)
	}
	if err := b.Close(); err != nil {
		return Placed{}, errors.Join(err, file.Close())
	}
	b.file, b.number, b.size, b.began, b.chain = file, b.number+1, int64(len(line)), at, chain
	return Placed{*entry, b.number, at, Position{Stream: at}}, nil
}

// Close closes the last file. Everything that was appended is on disk already.
func (b *Book) Close() error {
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}

// Event is one message of stream LEDGER.
type Event struct {
	Type     ledger.Type
	ID       string // identical for the same event
	Data     json.RawMessage
	Stream   time.Time // creation time of the stream: with Sequence it identifies the event
	Sequence uint64
	Received time.Time // by the broker's clock
}

// Check returns an error if the event can never be an entry.
func (e *Event) Check() error {
	if _, err := ledger.ParseType(string(e.Type)); err != nil || e.Type == ledger.Genesis {
		return fmt.Errorf("event %s: a service may not write type %q", e.ID, e.Type)
	}
	data, err := e.data()
	if err != nil {
		return err
	}
	if _, err := ledger.Canonical(data); err != nil {
		return fmt.Errorf("event %s: %w", e.ID, err)
	}
	return nil
}

// record is the data of an entry: the event and its place in the stream.
type record struct {
	At       time.Time       `json:"at"`
	Event    json.RawMessage `json:"event"`
	ID       string          `json:"id"`
	Sequence uint64          `json:"sequence"`
	Stream   time.Time       `json:"stream"`
}

func (e *Event) data() ([]byte, error) {
	data, err := json.Marshal(record{e.Received.UTC(), e.Data, e.ID, e.Sequence, e.Stream.UTC()})
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return data, nil
}

// Position is how far a stream has been chained.
type Position struct {
	Stream   time.Time
	Sequence uint64
}

// Placed is an entry with its place.
type Placed struct {
	ledger.Entry
	File     uint64    // number of the file, from 1
	At       time.Time // by the broker's clock
	Position Position  // position of its event; a GENESIS has sequence 0
}

// place decodes the time and the stream position of an entry's event.
func (p *Placed) place() error {
	if p.Type == ledger.Genesis {
		var opening struct {
			Created time.Time `json:"created"`
		}
		err := json.Unmarshal(p.Data, &opening)
		p.At, p.Position.Stream = opening.Created, opening.Created
		return err
	}
	var r record
	err := json.Unmarshal(p.Data, &r)
	p.At, p.Position = r.At, Position{r.Stream, r.Sequence}
	return err
}
