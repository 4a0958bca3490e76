package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Type is an entry's type (section 3.1).
type Type string

// The six types of section 3.1.
const (
	Genesis Type = "GENESIS" // opens a ledger: entry 0
	Boot    Type = "BOOT"
	Claim   Type = "CLAIM"
	Verify  Type = "VERIFY"
	Retract Type = "RETRACT"
	Meta    Type = "META"
)

var types = []Type{Genesis, Boot, Claim, Verify, Retract, Meta}

// ParseType reads one of the six types.
func ParseType(text string) (Type, error) {
	if !slices.Contains(types, Type(text)) {
		return "", fmt.Errorf("type %q is none of BOOT, CLAIM, VERIFY, RETRACT, META, GENESIS", clip(text))
	}
	return Type(text), nil
}

// Event is an event that a service wants to enter. It becomes an Entry when it is appended to a
// chain.
type Event struct {
	Type Type
	ID   string // a repeated event has the same id
	Data []byte // JSON
}

// Hash is an entry's hash: a SHA-256.
type Hash [sha256.Size]byte

// String returns 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads 64 lower-case hexadecimal digits.
func ParseHash(text string) (h Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != text {
		return h, fmt.Errorf("hash %q is not 64 lower-case hexadecimal digits", clip(text))
	}
	return Hash(b), nil
}

// Entry is one entry of a ledger (section 3.1).
type Entry struct {
	Seq  uint64
	Type Type
	Data []byte // a JSON object in canonical form (RFC 8785)
	Hash Hash   // over the previous entry and this one
}

// HashEntry computes an entry's hash: the SHA-256 of the previous hash, number, type and
// canonical data, as text, joined by "|" (section 3.1). The previous hash of the first entry is
// 32 zero bytes.
func HashEntry(previous Hash, seq uint64, kind Type, canonical []byte) Hash {
	h := sha256.New()
	var room [96]byte
	head := hex.AppendEncode(room[:0], previous[:])
	head = strconv.AppendUint(append(head, '|'), seq, 10)
	h.Write(append(append(append(head, '|'), kind...), '|'))
	h.Write(canonical)
	return Hash(h.Sum(nil))
}

// AppendLine appends the entry as a line of a ledger file, line feed included.
func (e *Entry) AppendLine(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, `{"seq":`...), e.Seq, 10)
	dst = append(append(dst, `,"type":"`...), e.Type...)
	dst = append(append(dst, `","data":`...), e.Data...)
	dst = hex.AppendEncode(append(dst, `,"hash":"`...), e.Hash[:])
	return append(dst, "\"}\n"...)
}

// clip bounds a text for a message.
func clip(text string) string { return schema.Clip(text, 80) }

// Chain appends entries. The zero Chain is empty; its first entry must be GENESIS.
type Chain struct {
	next uint64 // number of the next entry
	last Hash   // of the newest entry
}

// Resume returns the chain whose newest entry is e.
func Resume(e *Entry) Chain { return Chain{next: e.Seq + 1, last: e.Hash} }

// Len returns the number of entries in the chain.
func (c *Chain) Len() uint64 { return c.next }

// Last returns the newest entry's hash, zero where there is none.
func (c *Chain) Last() Hash { return c.last }

// Append adds an entry. data is a JSON object in any form.
func (c *Chain) Append(kind Type, data []byte) (*Entry, error) {
	if _, err := ParseType(string(kind)); err != nil {
		return nil, err
	}
	if (kind == Genesis) != (c.next == 0) {
		return nil, fmt.Errorf("entry %d of type %s: entry 0 is %s, and no other", c.next, kind, Genesis)
	}
	canonical, err := Canonical(data)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", c.next, err)
	}
	e := &Entry{Seq: c.next, Type: kind, Data: canonical, Hash: HashEntry(c.last, c.next, kind, canonical)}
	*c = Resume(e)
	return e, nil
}

// Opening is the data of a GENESIS entry.
type Opening struct {
	Agent         string    // owner of the ledger; the operator's ledger names its tenant
	Created       time.Time // when the file was started
	ContinuesFrom *Hash     // last hash of the previous file; nil for the first file (section 3.4)
}

const version = "1.0"

// Data returns the opening as JSON.
func (o *Opening) Data() ([]byte, error) {
	data, err := jsontext.AppendQuote([]byte(`{"agent":`), o.Agent)
	if err != nil {
		return nil, fmt.Errorf("agent of a ledger: %w", err)
	}
	if o.ContinuesFrom != nil {
		data = append(append(append(data, `,"continues_from":"`...), o.ContinuesFrom.String()...), '"')
	}
	data = append(data, `,"created":"`...)
	data = o.Created.UTC().AppendFormat(data, time.RFC3339Nano)
	return append(data, `","version":"`+version+`"}`...), nil
}

// ContinuesFrom returns the hash that a GENESIS entry continues from, nil where it opens the
// first file.
func (e *Entry) ContinuesFrom() (*Hash, error) {
	var data struct {
		From jsontext.Value `json:"continues_from"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || data.From == nil {
		return nil, err
	}
	hash, err := ParseHash(unquote(data.From))
	if err != nil {
		return nil, errors.New("continues_from is not the hash of an entry")
	}
	return &hash, nil
}

// Rotation defines when a file is full (section 3.4).
type Rotation struct {
	Entries uint64
	Age     time.Duration
}

// DefaultRotation returns the RFC's recommendation: 10,000 entries or 30 days.
func DefaultRotation() Rotation { return Rotation{Entries: 10_000, Age: 30 * 24 * time.Hour} }

// Due reports whether a file that was started at began must be sealed before its next entry.
func (r Rotation) Due(c *Chain, began, now time.Time) bool {
	return c.next >= r.Entries || c.next > 0 && now.Sub(began) >= r.Age
}
