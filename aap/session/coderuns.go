package session

import (
	"encoding/binary"
	"errors"

	"github.com/plumbline/plumbline/schema"
)

var errLoops = errors.New("the runs of equal acts of an agent's sessions cannot be decoded")

// compactRuns begins the encoding of the runs; their number follows. It is no kind, with which older engines began it.
const compactRuns = 7

// The first byte of a session is the kind of its run, and says what follows.
const (
	kindBits = 1<<3 - 1
	sameBit  = 1 << 3 // Same is not 0
	askedBit = 1 << 4 // Asked is not 0
	onceBit  = 1 << 5 // the run is one act: Count and Here are 1
	freshBit = 1 << 6 // with onceBit: Fresh and FreshHere are 1, and not 0
	mixedBit = 1 << 7
)

// Append appends the encoded runs to data. There is nothing to encode of no session.
func (l *Loops) Append(data []byte) []byte {
	if len(l.sessions) > 0 {
		data = append(data, compactRuns, byte(len(l.sessions)))
	}
	for i := range l.sessions {
		data = l.sessions[i].append(data)
	}
	return data
}

func (f *following) append(data []byte) []byte {
	r, says := &f.run, byte(f.run.Kind)
	if r.Same != 0 {
		says |= sameBit
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
	data = binary.LittleEndian.AppendUint64(append(data, says), f.session)
	if says&sameBit != 0 {
		data = binary.LittleEndian.AppendUint64(data, r.Same)
	}
	if says&askedBit != 0 {
		data = binary.LittleEndian.AppendUint64(data, r.Asked)
	}
	data = binary.AppendVarint(data, r.Place)
	if says&onceBit == 0 {
		for _, n := range [...]uint32{r.Count, r.Fresh, r.Here, r.FreshHere} {
			data = binary.AppendUvarint(data, uint64(n))
		}
	}
	if uuid, is := schema.ParseUUID(f.first); is { // in place of a length
		return append(append(data, 0), uuid[:]...)
	}
	return append(binary.AppendUvarint(data, uint64(len(f.first))+1), f.first...)
}

// LoadLoops reads what Append has written, of this engine or an older one.
func LoadLoops(data []byte) (l Loops, err error) {
	if len(data) == 0 || data[0] != compactRuns {
		return loadOlder(data)
	}
	r := runReader{data: data[1:]}
	for n := r.next(1)[0]; n > 0; n-- {
		f := r.following()
		if r.short || f.run.Kind > refusal || len(l.sessions) == maxFollowed {
			return Loops{}, errLoops
		}
		l.sessions = append(l.sessions, f)
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

func (r *runReader) following() (f following) {
	says := r.next(1)[0]
	f.session = binary.LittleEndian.Uint64(r.next(8))
	f.run = run{Kind: kind(says & kindBits), Mixed: says&mixedBit != 0}
	if says&sameBit != 0 {
		f.run.Same = binary.LittleEndian.Uint64(r.next(8))
	}
	if says&askedBit != 0 {
		f.run.Asked = binary.LittleEndian.Uint64(r.next(8))
	}
	place, size := binary.Varint(r.data)
	f.run.Place, r.short = place, r.short || size <= 0
	r.next(max(0, size))
	if says&onceBit != 0 {
		f.run.Count, f.run.Here = 1, 1
		if says&freshBit != 0 {
			f.run.Fresh, f.run.FreshHere = 1, 1
		}
	} else {
		f.run.Count, f.run.Fresh, f.run.Here, f.run.FreshHere = r.number(), r.number(), r.number(), r.number()
	}
	if length := r.number(); length > 0 {
		f.first = string(r.next(int(length - 1)))
	} else {
		f.first = schema.UUID(r.next(len(schema.UUID{}))).String()
	}
	return f
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
		f := following{session: binary.LittleEndian.Uint64(data[1:])}
		f.run = run{Kind: kind(data[0] &^ mixedBit), Mixed: data[0]&mixedBit != 0, Same: binary.LittleEndian.Uint64(data[9:]),
			Asked: binary.LittleEndian.Uint64(data[17:]), Place: int64(binary.LittleEndian.Uint64(data[25:]))}
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
