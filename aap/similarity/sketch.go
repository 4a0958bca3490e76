package similarity

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// SketchTextBytes is the length of the part of a text that a sketch reads.
const SketchTextBytes = 1024

// half is the size of each half of a sketch: one for words, one for characters.
const half = 128

// unit is the integer that represents length one in a sketch. The sum of up to 100 sketches
// fits into 16 bits.
const unit = 256

// The parts of a sketch are the text parts of AAP section 8.3, in the ratio 60:30.
var (
	wordPart      = unit * math.Sqrt(wordWeight/(wordWeight+characterWeight))
	characterPart = unit * math.Sqrt(characterWeight/(wordWeight+characterWeight))
)

// Sketch represents a text in 512 bytes. The words and pairs of words of a text are hashed
// (FNV-1a, 64 bits), each with its own sign, into 128 sums, and its sequences of 3 to 5
// characters into another 128. Each half is scaled to a fixed length, so
//
//	a.Dot(b) / Unit2 ≈ (0.60·cos(words) + 0.30·cos(characters)) / 0.90
//
// with an error of about 0.07 for one pair, which is smaller for a mean over pairs. There is no
// IDF, because a stream has no corpus. Sketches of up to 100 texts can be added. All numbers
// are integers, so the order of addition does not matter.
type Sketch [2 * half]int16

// Unit2 is, up to rounding, the dot product of a sketch with itself, if it has words and
// characters.
const Unit2 = unit * unit

// SketchOf returns the sketch of the first SketchTextBytes of text. It is zero for a text with
// no word and fewer than three characters.
func SketchOf(text string) (s Sketch) {
	var sums [2 * half]int32
	var f foldedText
	f.read(text)
	f.hashWords(sums[:half])
	f.hashCharacters(sums[half:])
	scale(s[:half], sums[:half], wordPart)
	scale(s[half:], sums[half:], characterPart)
	return s
}

// Dot returns the dot product; Unit2 corresponds to 1.
func (s *Sketch) Dot(o *Sketch) (sum int64) {
	for i := range s {
		sum += int64(s[i]) * int64(o[i])
	}
	return sum
}

// Add adds o to s.
func (s *Sketch) Add(o *Sketch) {
	for i := range s {
		s[i] += o[i]
	}
}

func scale(into []int16, sums []int32, length float64) {
	var squares int64
	for _, n := range sums {
		squares += int64(n) * int64(n)
	}
	if squares == 0 {
		return
	}
	norm := math.Sqrt(float64(squares))
	for i, n := range sums {
		into[i] = int16(math.Round(float64(n) * length / norm))
	}
}

// foldedText is the result of fold, without allocation: the bytes of the characters and the
// offset of each.
type foldedText struct {
	bytes  [utf8.UTFMax * SketchTextBytes]byte // lower case may be longer
	starts [SketchTextBytes + 1]uint16
	size   int // bytes
	count  int // characters
}

func (f *foldedText) read(text string) {
	pending := false // a space that is not written yet
	for at, r := range text {
		if at+max(1, utf8.RuneLen(r)) > SketchTextBytes {
			return
		}
		switch {
		case unicode.IsSpace(r):
			pending = f.count > 0
			continue
		case pending:
			f.append(' ')
			pending = false
		}
		f.append(unicode.ToLower(r))
	}
}

func (f *foldedText) append(r rune) {
	f.size += utf8.EncodeRune(f.bytes[f.size:], r)
	f.count++
	f.starts[f.count] = uint16(f.size)
}

// The constants of FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// note adds a term's hash: seven bits select the sum, one more the sign.
func note(sums []int32, hash uint64) {
	hash ^= hash >> 32 // FNV's low bits are the weakest
	if hash&half != 0 {
		sums[hash%half]++
	} else {
		sums[hash%half]--
	}
}

func (f *foldedText) hashWords(sums []int32) {
	var before uint64
	hash, inside := uint64(fnvOffset), false
	for i := 0; i <= f.count; i++ {
		if i < f.count {
			if c := f.bytes[f.starts[i]:f.starts[i+1]]; isWordByte(c) {
				hash, inside = fnv(hash, c), true
				continue
			}
		}
		if inside {
			note(sums, hash)
			if before != 0 {
				note(sums, (before^hash>>1)*fnvPrime)
			}
			before, hash, inside = hash, fnvOffset, false
		}
	}
}

// isWordByte reports whether a single character belongs to a word.
func isWordByte(c []byte) bool {
	if c[0] < utf8.RuneSelf {
		return 'a' <= c[0] && c[0] <= 'z' || '0' <= c[0] && c[0] <= '9'
	}
	r, _ := utf8.DecodeRune(c)
	return inWord(r)
}

func (f *foldedText) hashCharacters(sums []int32) {
	for i := range f.count {
		hash := uint64(fnvOffset)
		for size := 1; size <= longestGram && i+size <= f.count; size++ {
			hash = fnv(hash, f.bytes[f.starts[i+size-1]:f.starts[i+size]])
			if size >= shortestGram {
				note(sums, hash)
			}
		}
	}
}

func fnv(hash uint64, bytes []byte) uint64 {
	for _, b := range bytes {
		hash = (hash ^ uint64(b)) * fnvPrime
	}
	return hash
}
