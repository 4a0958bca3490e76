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
	var f foldedText
	var words, characters counts
	f.read(text)
	f.hashWords(&words)
	f.hashCharacters(&characters)
	words.scale(s[:half], wordPart)
	characters.scale(s[half:], characterPart)
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

// counts are the numbers of terms by the place and sign that their hashes select: first the
// negative ones of each place, then the positive ones. So a term is counted without a branch, which
// no processor could predict.
type counts [2 * half]uint16

// note counts a term: seven bits of its hash select the place, one more the sign.
func (c *counts) note(hash uint64) { c[uint8(hash^hash>>32)]++ } // FNV's low bits are the weakest

// scale writes the sums of all places, scaled to a length.
func (c *counts) scale(into []int16, length float64) {
	var sums [half]int64
	var squares int64
	for i := range sums {
		sums[i] = int64(c[half+i]) - int64(c[i])
		squares += sums[i] * sums[i]
	}
	if squares == 0 {
		return
	}
	norm := math.Sqrt(float64(squares))
	var small [16]int16 // of sums up to 15, which nearly all are
	for n := range small {
		small[n] = scaled(int64(n), length, norm)
	}
	for i, n := range sums[:len(into)] {
		switch {
		case 0 <= n && n < int64(len(small)):
			into[i] = small[n]
		case n < 0 && -n < int64(len(small)):
			into[i] = -small[-n]
		default:
			into[i] = scaled(n, length, norm)
		}
	}
}

func scaled(n int64, length, norm float64) int16 {
	return int16(math.Round(float64(n) * length / norm))
}

// foldedText is the result of fold, without allocation.
type foldedText struct {
	bytes [utf8.UTFMax*SketchTextBytes + 1]byte // lower case may be longer; a zero byte follows the text
	size  int                                   // bytes
	count int                                   // characters
}

// plain is each ASCII character in lower case, and white space as a space.
var plain = func() (table [utf8.RuneSelf]byte) {
	for r := range rune(utf8.RuneSelf) {
		if table[r] = byte(unicode.ToLower(r)); unicode.IsSpace(r) {
			table[r] = ' '
		}
	}
	return table
}()

func (f *foldedText) read(text string) {
	pending, size, count := false, 0, 0 // pending: a space that is not written yet
	for at, r := range text {
		if at+max(1, utf8.RuneLen(r)) > SketchTextBytes {
			break
		}
		switch {
		case r < utf8.RuneSelf:
			r = rune(plain[r])
		case unicode.IsSpace(r):
			r = ' '
		default:
			r = unicode.ToLower(r)
		}
		if r == ' ' {
			pending = count > 0
			continue
		}
		if pending {
			f.bytes[size] = ' '
			size, count, pending = size+1, count+1, false
		}
		if r < utf8.RuneSelf {
			f.bytes[size] = byte(r)
			size++
		} else {
			size += utf8.EncodeRune(f.bytes[size:], r)
		}
		count++
	}
	f.size, f.count = size, count
}

// The constants of FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// plainWord has the ASCII characters that belong to a word in lower case.
var plainWord = func() (table [utf8.RuneSelf]bool) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = inWord(r) && r == unicode.ToLower(r)
	}
	return table
}()

func (f *foldedText) hashWords(c *counts) {
	var before uint64
	hash, inside := uint64(fnvOffset), false
	text := f.bytes[:f.size+1] // the zero byte ends the last word
	for i := 0; i < len(text); {
		b, size := text[i], 1
		if b < utf8.RuneSelf {
			if plainWord[b] {
				hash, inside = (hash^uint64(b))*fnvPrime, true
				i++
				continue
			}
		} else {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); inWord(r) {
				hash, inside = fnv(hash, text[i:i+size]), true
				i += size
				continue
			}
		}
		if inside {
			c.note(hash)
			if before != 0 {
				c.note((before ^ hash>>1) * fnvPrime)
			}
			before, hash, inside = hash, fnvOffset, false
		}
		i += size
	}
}

func (f *foldedText) hashCharacters(c *counts) {
	if f.size == f.count { // each character is one byte: the usual text
		f.hashPlain(c)
		return
	}
	var starts [SketchTextBytes + 1]int // of every character, and the end
	starts[f.count] = f.size
	for n, i := 0, 0; i < f.size; n++ {
		starts[n] = i
		_, size := utf8.DecodeRune(f.bytes[i:f.size])
		i += size
	}
	for i := range f.count {
		hash := uint64(fnvOffset)
		for size := 1; size <= longestGram && i+size <= f.count; size++ {
			hash = fnv(hash, f.bytes[starts[i+size-1]:starts[i+size]])
			if size >= shortestGram {
				c.note(hash)
			}
		}
	}
}

// hashPlain hashes sequences of characters that are one byte each.
func (f *foldedText) hashPlain(c *counts) {
	text := f.bytes[:f.size]
	for ; len(text) >= longestGram; text = text[1:] {
		hash := (uint64(fnvOffset) ^ uint64(text[0])) * fnvPrime
		hash = (hash ^ uint64(text[1])) * fnvPrime
		hash = (hash ^ uint64(text[2])) * fnvPrime
		c.note(hash)
		hash = (hash ^ uint64(text[3])) * fnvPrime
		c.note(hash)
		c.note((hash ^ uint64(text[4])) * fnvPrime)
	}
	if len(text) == longestGram-1 {
		c.note(fnv(fnvOffset, text))
		c.note(fnv(fnvOffset, text[1:]))
	}
	if len(text) >= shortestGram {
		c.note(fnv(fnvOffset, text[:shortestGram]))
	}
}

func fnv(hash uint64, bytes []byte) uint64 {
	for _, b := range bytes {
		hash = (hash ^ uint64(b)) * fnvPrime
	}
	return hash
}
