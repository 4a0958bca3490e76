package similarity

import (
	"crypto/sha256"
	"fmt"
	fnv1a "hash/fnv"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"pgregory.net/rapid"
)

func TestSketchIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Sketch{}); size != 512 {
		t.Errorf("a sketch takes %d bytes, want 512", size)
	}
}

// Sketches approximate the exact vectors without IDF.
func TestSketchApproximatesTheCosine(t *testing.T) {
	words := strings.Fields(`the user asked for a refund of one ticket because flight was cancelled policy allows it when
		fare is flexible and booking happened within day agent checked reservation offered voucher customer accepted`)
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.SampledFrom(words), 8, 60)
		a, b := strings.Join(some.Draw(t, "a"), " "), strings.Join(some.Draw(t, "b"), " ")
		sketchA, sketchB := SketchOf(a), SketchOf(b)
		exact := (0.6*plainCosine(wordTerms(a), wordTerms(b)) + 0.3*plainCosine(characterTerms(a), characterTerms(b))) / 0.9
		if got := float64(sketchA.Dot(&sketchB)) / Unit2; math.Abs(got-exact) > 0.35 {
			t.Fatalf("the sketches give %v, the vectors %v", got, exact)
		}
		if self := float64(sketchA.Dot(&sketchA)) / Unit2; math.Abs(self-1) > 0.03 {
			t.Fatalf("a sketch and itself: %v", self)
		}
	})
}

func plainCosine(a, b map[string]int) float64 {
	var dot, squareA, squareB float64
	for term, n := range a {
		dot += float64(n * b[term])
		squareA += float64(n * n)
	}
	for _, n := range b {
		squareB += float64(n * n)
	}
	return dot / math.Sqrt(squareA*squareB)
}

// Any bytes have a sketch. Case, white space and bytes beyond the bound make no difference.
func TestSketchReadsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		SketchOf(string(rapid.SliceOfN(rapid.Byte(), 0, 3*SketchTextBytes).Draw(t, "bytes")))
	})
	if SketchOf("A  b\nC") != SketchOf("a b c") {
		t.Error("case or white space changes a sketch")
	}
	long := strings.Repeat("é", SketchTextBytes)
	if SketchOf(long) != SketchOf(long[:SketchTextBytes]) {
		t.Error("text beyond the limit changes a sketch")
	}
	if SketchOf(long[:SketchTextBytes]) == SketchOf(long[:SketchTextBytes-len("é")]) {
		t.Error("the last character within the bound is not read")
	}
	if SketchOf(" \n") != (Sketch{}) {
		t.Error("white space has a sketch")
	}
	for _, hostile := range []string{strings.Repeat("\xff", 4096), strings.Repeat("Ⱥ", 4096), strings.Repeat(" \u3000", 4096), strings.Repeat("a ", 4096)} {
		SketchOf(hostile)
	}
}

// Drift stores sketches across versions, so the sketch of a text must never change.
func TestSketchesStayComparable(t *testing.T) {
	text := " The agent checked 10 fares, chose \"B2\" (cheaper by 35 %)\n and asked Zoë über Ⱥ: привет, мир! "
	if got := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, SketchOf(text)))); got != "9371a82d929fcd6474ae60cca8672acb1b05f069eb572f5dec10825bb86a9043" {
		t.Errorf("the sketch has digest %s", got)
	}
}

// A sketch counts words and pairs of words, and each sequence of 3 to 5 characters, including
// the last ones of the text.
func TestSketchCountsEveryTerm(t *testing.T) {
	for text, want := range map[string][2]int{
		"": {0, 0}, "a": {1, 0}, "ab": {1, 0}, "abc": {1, 1}, "abcd": {1, 3}, "abcde": {1, 6}, "abcdef": {1, 9},
		"a b": {3, 1}, "a b c": {5, 6}, "a.": {1, 0}, ".a": {1, 0}, "...": {0, 1},
		"z": {1, 0}, "0": {1, 0}, "9": {1, 0}, "é": {1, 0}, "A": {1, 0}, "Z": {1, 0},
		"/": {0, 0}, ":": {0, 0}, "@": {0, 0}, "[": {0, 0}, "`": {0, 0}, "{": {0, 0}, "\u00a7": {0, 0},
		"  ab": {1, 0}, "ab  ": {1, 0}, // white space around a text is ignored
	} {
		var f foldedText
		var words, characters counts
		f.read(text)
		f.hashWords(&words)
		f.hashCharacters(&characters)
		if got := [2]int{total(&words), total(&characters)}; got != want {
			t.Errorf("%q: %d terms, want %d", text, got, want)
		}
	}
}

func total(terms *counts) (n int) {
	for _, count := range terms {
		n += int(count)
	}
	return n
}

// The sketch of a text is what its definition says, computed term by term: the fast way for plain
// text counts the same terms.
func TestSketchIsAsDefined(t *testing.T) {
	characters := rapid.SampledFrom([]rune("aab bcZ0.,\n é√ß ȺЖ界\ufffd"))
	plain := rapid.SampledFrom([]rune("aaabbc Z.9"))
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.OneOf(rapid.SliceOfN(characters, 0, 40), rapid.SliceOfN(plain, 0, 1100)).Draw(t, "text"))
		if got, want := SketchOf(text), definedSketch(text); got != want {
			t.Fatalf("the sketch is %v, want %v", got, want)
		}
	})
	for _, text := range []string{strings.Repeat("a", 1024), strings.Repeat("ab", 300), strings.Repeat("aaa ", 256), strings.Repeat("é", 512)} {
		if SketchOf(text) != definedSketch(text) {
			t.Errorf("the sketch of %.8q… is not as defined", text)
		}
	}
}

func definedSketch(text string) (s Sketch) {
	for len(text) > SketchTextBytes {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	folded := strings.ToLower(strings.Join(strings.Fields(text), " "))
	note := func(sums []float64, hash uint64) {
		hash ^= hash >> 32
		sums[hash%half] += float64(int(hash>>7&1)*2 - 1)
	}
	hashOf := func(text string) uint64 {
		h := fnv1a.New64a()
		h.Write([]byte(text))
		return h.Sum64()
	}
	var sums [2 * half]float64
	var before uint64
	for _, word := range strings.FieldsFunc(folded, func(r rune) bool { return !inWord(r) }) {
		hash := hashOf(word)
		note(sums[:half], hash)
		if before != 0 {
			note(sums[:half], (before^hash>>1)*1099511628211)
		}
		before = hash
	}
	runes := []rune(folded)
	for size := 3; size <= 5; size++ {
		for i := range max(0, len(runes)-size+1) {
			note(sums[half:], hashOf(string(runes[i:i+size])))
		}
	}
	for part, weight := range [...]float64{60, 30} {
		sums, into := sums[part*half:][:half], s[part*half:][:half]
		var squares float64
		for _, n := range sums {
			squares += n * n
		}
		for i, n := range sums {
			if squares > 0 {
				into[i] = int16(math.Round(n * (256 * math.Sqrt(weight/90)) / math.Sqrt(squares)))
			}
		}
	}
	return s
}

// The sum of a hundred sketches, the size of the largest baseline, does not overflow.
func TestHundredSketchesAddUp(t *testing.T) {
	one := SketchOf("aaaaaaaa")
	var sum Sketch
	for range 100 {
		sum.Add(&one)
	}
	for i := range sum {
		if int(sum[i]) != 100*int(one[i]) {
			t.Fatalf("sum %d of %d", sum[i], one[i])
		}
	}
}

func BenchmarkSketch(b *testing.B) {
	text := strings.Repeat("The user prefers the cheaper of two fares. ", 7)[:300]
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		SketchOf(text)
	}
}
