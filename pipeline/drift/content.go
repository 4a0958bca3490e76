package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// content is what a series remembers of its traces. Decoded it takes several times the memory of its
// encoding, so most series in memory have only that (see pack).
type content struct {
	state  aapdrift.State
	recent recent
	loops  session.Loops
}

// fingerprint is the first 6 bytes of a SHA-256: a new id is taken for one of the recent ones once in 9·10¹² times.
type fingerprint [6]byte

func fingerprintOf(text string) fingerprint {
	sum := sha256.Sum256([]byte(text))
	return fingerprint(sum[:])
}

// contentMark is the first 3 bytes of the digest of a trace's content. Two contents with one id have the same mark once
// in 16,777,216 times: then the second counts as a copy, and not as a conflict. It is not applied in either case. Older engines
// kept 2 bytes; the last one of these marks is zero.
type contentMark [3]byte

func markOf(d schema.Digest) contentMark { return contentMark(d[:]) }

// fits reports whether the mark is that of a content. A mark of an older engine says less, and fits more of them.
func (m contentMark) fits(d schema.Digest) bool {
	return [shortMark]byte(m[:]) == [shortMark]byte(d[:]) && (m == markOf(d) || m[shortMark] == 0)
}

// recent lists the traces of a series that were applied last, oldest first: for each the fingerprint
// of its id and the mark of its content. An older trace is not known again by its id: its copy is late or doubtful (see
// doubtful), and another content with the same id is late, unless it has a newer time.
type recent []byte

const mentionBytes = len(fingerprint{}) + len(contentMark{})

// remembered is how many traces recent holds.
const remembered = 24

func (r *recent) add(id fingerprint, content contentMark) {
	if len(*r) >= remembered*mentionBytes {
		*r = append((*r)[:0], (*r)[len(*r)-(remembered-1)*mentionBytes:]...)
	}
	*r = append(append(*r, id[:]...), content[:]...)
}

func (r recent) content(id fingerprint) (content contentMark, known bool) {
	for ; len(r) > 0; r = r[mentionBytes:] {
		if fingerprint(r[:len(id)]) == id {
			return contentMark(r[len(id):mentionBytes]), true
		}
	}
	return content, false
}

// The packed form of a content, which is stored as it is: packedTag; the greatest order that the
// series has applied, 8 bytes; the greatest time, 8 bytes; the number of its recent traces, a byte; these; the length of its
// loops, 2 bytes; these; the state of the step. Older engines stored untimed instead of packedTag, and no greatest time; before
// that shortMarks, and marks of 2 bytes; before that longMarks, and marks of 8 bytes; and before that JSON, which begins with
// another byte.
const (
	longMarks   = 1
	shortMarks  = 2
	untimed     = 3
	packedTag   = 4
	packedFixed = 1 + 8 + 8 + 1
	olderFixed  = 1 + 8 + 1
)

func isPacked(data []byte) bool { return len(data) > 0 && data[0] == packedTag }

// append appends the packed content to data.
func (c *content) append(data []byte, reached, latest int64) ([]byte, error) {
	data = binary.LittleEndian.AppendUint64(append(data, packedTag), uint64(reached))
	data = binary.LittleEndian.AppendUint64(data, uint64(latest))
	data = append(append(data, byte(len(c.recent)/mentionBytes)), c.recent...)
	at := len(data)
	data = c.loops.Append(append(data, 0, 0), c.known())
	binary.LittleEndian.PutUint16(data[at:], uint16(len(data)-at-2)) // aap/session keeps at most some KB
	return c.state.Append(data)
}

// recentOf returns the recent traces of a packed content, which the caller must not change.
func recentOf(packed []byte) recent {
	if packed == nil {
		return nil
	}
	return recent(packed[packedFixed : packedFixed+int(packed[packedFixed-1])*mentionBytes])
}

// unpack decodes what append wrote, or what older engines stored: these did not store the greatest time, for which it
// returns 0.
func unpack(data []byte) (c *content, reached, latest int64, err error) {
	switch {
	case isPacked(data):
		if c, reached, err = unpackBinary(data, packedFixed, mentionBytes); err == nil {
			latest = int64(binary.LittleEndian.Uint64(data[1+8:]))
		}
	case len(data) > 0 && data[0] == untimed:
		c, reached, err = unpackBinary(data, olderFixed, mentionBytes)
	case len(data) > 0 && data[0] == shortMarks:
		c, reached, err = unpackBinary(data, olderFixed, shortMention)
	case len(data) > 0 && data[0] == longMarks:
		c, reached, err = unpackBinary(data, olderFixed, longMention)
	default:
		c, reached, err = unpackJSON(data)
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("decode the state of a series: %w", err)
	}
	return c, reached, latest, nil
}

var errShort = errors.New("it ends too early")

// unpackBinary decodes a packed content that has so many bytes before its recent traces, and for each of these.
func unpackBinary(data []byte, fixed, each int) (*content, int64, error) {
	if len(data) < fixed || len(data) < fixed+int(data[fixed-1])*each+2 {
		return nil, 0, errShort
	}
	reached := int64(binary.LittleEndian.Uint64(data[1:]))
	end := fixed + int(data[fixed-1])*each
	c := &content{recent: recentFrom(data[fixed:end], each)}
	data = data[end:]
	length := 2 + int(binary.LittleEndian.Uint16(data))
	if length > len(data) {
		return nil, 0, errShort
	}
	return c, reached, c.decode(data[2:length], data[length:])
}

// The bytes that older engines stored of each recent trace: first 8 of the id's hash, and 8 of its content's; later as
// many of the id's hash as today, and 2 of its content's.
const (
	longHash     = 8
	longMention  = 2 * longHash
	shortMark    = 2
	shortMention = len(fingerprint{}) + shortMark
)

// recentFrom returns recent traces that were stored in so many bytes each.
func recentFrom(stored []byte, each int) recent {
	r, hash := make(recent, 0, remembered*mentionBytes), len(fingerprint{})
	if each == longMention {
		hash = longHash
	}
	for part := range slices.Chunk(stored, each) {
		var mark contentMark
		copy(mark[:], part[hash:])
		r.add(fingerprint(part), mark)
	}
	return r
}

// storedSeries is how older engines stored a series.
type storedSeries struct {
	Recent  []byte          `json:"recent,omitempty"`
	Loops   []byte          `json:"loops,omitempty"`
	Reached int64           `json:"reached,omitempty"` // absent where it is the time of the trace applied last
	Series  json.RawMessage `json:"course,omitempty"`  // the state of aap/drift
}

func unpackJSON(data []byte) (*content, int64, error) {
	var w storedSeries
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, 0, err
	}
	if len(w.Recent)%longMention != 0 {
		return nil, 0, fmt.Errorf("%d bytes of recent traces", len(w.Recent))
	}
	c := &content{recent: recentFrom(w.Recent, longMention)}
	return c, w.Reached, c.decode(w.Loops, w.Series)
}

func (c *content) decode(loops, state []byte) error {
	decoded, err := aapdrift.UnmarshalState(state)
	if err != nil {
		return err
	}
	c.state = *decoded
	c.loops, err = session.LoadLoops(loops, c.known())
	return err
}

// known returns the sessions that the state has: its learning ones.
func (c *content) known() (known []session.Known) {
	for id, newest := range c.state.Learned() {
		known = append(known, session.KnownSession(id, newest))
	}
	return known
}

// StateOf returns the state of a series from its stored form.
func StateOf(row *store.DriftState) (*aapdrift.State, error) {
	c, _, _, err := unpack(row.State)
	if err != nil {
		return nil, err
	}
	return &c.state, nil
}
