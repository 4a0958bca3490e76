package session

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

var errLoops = errors.New("the runs of equal acts of an agent's sessions cannot be decoded")

// compactRuns begins the encoding of the runs; their number follows. It is no kind, with which older engines began it.
const compactRuns = 7

// The first byte of a session is the kind of its run, and says what follows.
const (
	kindBits  = 1<<3 - 1
	microsBit = 1 << 3 // the difference of Place is in microseconds
	askedBit  = 1 << 4 // Asked is not 0
	onceBit   = 1 << 5 // the run is one act: Count and Here are 1
	freshBit  = 1 << 6 // with onceBit: Fresh and FreshHere are 1, and not 0
	mixedBit  = 1 << 7
)

const micros = 1000 // nanoseconds

// hashBytes is how many bytes of a hash Loops keeps: two acts in a row are taken for equal once in 3·10¹⁴ times.
const hashBytes = 6

func short(hash uint64) uint64 { return hash & (1<<(8*hashBytes) - 1) }

// Known is a session that is stored with the runs, so that they need not store its id and its time again.
type Known struct {
	session uint64
	newest  int64
}

// KnownSession returns the session of this id, whose newest trace came at a time, in nanoseconds; 0 where it is not known.
func KnownSession(id string, newest int64) Known {
	sum := sha256.Sum256([]byte(id))
	return Known{short(binary.LittleEndian.Uint64(sum[:])), newest}
}

// Append appends the encoded runs to data. There is nothing to encode of no session. LoadLoops needs the same known
// sessions, at most 254.
func (l *Loops) Append(data []byte, known []Known) []byte {
	if len(l.sessions) > 0 {
		data = append(data, compactRuns, byte(len(l.sessions)))
	}
	place := int64(0)
	for i := range l.sessions {
		data = l.sessions[i].append(data, known, place)
		place = l.sessions[i].run.Place
	}
	return data
}

// append appends a session to data, whose place is coded by its difference from its time, or from before.
func (f *following) append(data []byte, known []Known, before int64) []byte {
	r, says := &f.run, byte(f.run.Kind)
	at := slices.IndexFunc(known, func(k Known) bool { return k.session == f.session })
	if at >= 0 && known[at].newest != 0 {
		before = known[at].newest
	}
	later := r.Place - before
	if later%micros == 0 {
		later /= micros
		says |= microsBit
	}
	if r.Asked != 0 {
		says |= askedBit
	}
	if r.Count == 1 && r.Here == 1 && r.Fresh <= 1 && r.FreshHere == r.Fresh {
		says |= onceBit
		if r.Fresh == 1 {
			says |= freshBit
		}
	}
	if r.Mixed {
		says |= mixedBit
	}
	data = append(data, says)
	if len(known) > 0 {
		data = append(data, byte(at+1))
	}
	if at < 0 {
		data = appendHash(data, f.session)
	}
	if says&askedBit != 0 {
		data = appendHash(data, r.Asked)
	}
	data = binary.AppendVarint(data, later)
	if says&onceBit == 0 {
		for _, n := range [...]uint32{r.Count, r.Fresh, r.Here, r.FreshHere} {
			data = binary.AppendUvarint(data, uint64(n))
		}
	}
	if r.Kind == noLoop { // it is no part of a loop, and needs neither
		return data
	}
	data = appendHash(data, r.Same)
	if uuid, is := schema.ParseUUID(f.first); is { // in place of a length
		return append(append(data, 0), uuid[:]...)
	}
	return append(binary.AppendUvarint(data, uint64(len(f.first))+1), f.first...)
}

func appendHash(data []byte, hash uint64) []byte {
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], hash)
	return append(data, all[:hashBytes]...)
}

// LoadLoops reads what Append has written, of this engine or an older one.
func LoadLoops(data []byte, known []Known) (l Loops, err error) {
	if len(data) == 0 || data[0] != compactRuns {
		return loadOlder(data)
	}
	r := runReader{data: data[1:]}
	place := int64(0)
	for n := r.next(1)[0]; n > 0; n-- {
		f := r.following(known, place)
		if r.short || f.run.Kind > refusal || len(l.sessions) == maxFollowed {
			return Loops{}, errLoops
		}
		l.sessions = append(l.sessions, f)
		place = f.run.Place
	}
	if len(r.data) > 0 || len(l.sessions) == 0 {
		return Loops{}, errLoops
	}
	return l, nil
}

// runReader reads encoded runs. After the data has ended too early it reads zeros.
type runReader struct {
	data  []byte
	short bool
}

func (r *runReader) following(known []Known, before int64) (f following) {
	says, at := r.next(1)[0], 0
	if len(known) > 0 {
		at = int(r.next(1)[0])
	}
	switch {
	case at > len(known):
		r.short = true
	case at > 0:
		f.session = known[at-1].session
		if newest := known[at-1].newest; newest != 0 {
			before = newest
		}
	default:
		f.session = r.hash()
	}
	f.run = run{Kind: kind(says & kindBits), Mixed: says&mixedBit != 0}
	if says&askedBit != 0 {
		f.run.Asked = r.hash()
	}
	later, size := binary.Varint(r.data)
	r.short = r.short || size <= 0
	r.next(max(0, size))
	if says&microsBit != 0 {
		later *= micros
	}
	f.run.Place = before + later
	if says&onceBit != 0 {
		f.run.Count, f.run.Here = 1, 1
		if says&freshBit != 0 {
			f.run.Fresh, f.run.FreshHere = 1, 1
		}
	} else {
		f.run.Count, f.run.Fresh, f.run.Here, f.run.FreshHere = r.number(), r.number(), r.number(), r.number()
	}
	if f.run.Kind == noLoop {
		return f
	}
	f.run.Same = r.hash()
	if length := r.number(); length > 0 {
		f.first = string(r.next(int(length - 1)))
	} else {
		f.first = schema.UUID(r.next(len(schema.UUID{}))).String()
	}
	return f
}

func (r *runReader) hash() uint64 {
	var all [8]byte
	copy(all[:], r.next(hashBytes))
	return binary.LittleEndian.Uint64(all[:])
}

func (r *runReader) next(n int) []byte {
	if n > len(r.data) {
		r.short, r.data = true, nil
		return make([]byte, min(n, 1<<10))
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}

func (r *runReader) number() uint32 {
	n, size := binary.Uvarint(r.data)
	r.short = r.short || size <= 0 || n > 1<<32-1
	r.next(max(0, size))
	return uint32(n)
}

// loadOlder reads what older engines have written: of each session its kind, and mixedBit, and all else in full.
func loadOlder(data []byte) (l Loops, err error) {
	const fixed = 1 + 4*8
	for len(data) > 0 {
		if len(data) < fixed || len(l.sessions) == maxFollowed {
			return Loops{}, errLoops
		}
		f := following{session: short(binary.LittleEndian.Uint64(data[1:]))}
		f.run = run{Kind: kind(data[0] &^ mixedBit), Mixed: data[0]&mixedBit != 0, Same: short(binary.LittleEndian.Uint64(data[9:])),
			Asked: short(binary.LittleEndian.Uint64(data[17:])), Place: int64(binary.LittleEndian.Uint64(data[25:]))}
		data = data[fixed:]
		length := uint32(0)
		for _, to := range [...]*uint32{&f.run.Count, &f.run.Fresh, &f.run.Here, &f.run.FreshHere, &length} {
			n, size := binary.Uvarint(data)
			if size <= 0 || n > 1<<32-1 {
				return Loops{}, errLoops
			}
			*to, data = uint32(n), data[size:]
		}
		if f.run.Kind > refusal || int(length) > len(data) {
			return Loops{}, errLoops
		}
		f.first, data = string(data[:length]), data[length:]
		l.sessions = append(l.sessions, f)
	}
	return l, nil
}
