package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

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
