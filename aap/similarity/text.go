package similarity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/plumbline/plumbline/schema"
)

// The weights of AAP section 8.3 for the similarity of texts.
const (
	wordWeight      = 0.60
	characterWeight = 0.30
	metadataWeight  = 0.10
)

// The lengths of the shortest and longest sequences of characters that count.
const (
	shortestGram = 3
	longestGram  = 5
)

// MaxTextBytes is the maximum length of a text to compare.
const MaxTextBytes = 32 << 10

// Text is a text with its metadata.
type Text struct {
	Text     string
	Metadata Vector // structural features, with weights of at least 0; nil if unknown
}

// TextOf returns the selection reasoning of t with its structural features.
func TextOf(t *schema.Trace) Text {
	return Text{Text: t.Decision.Reasoning, Metadata: TraceFeatures(t, nil)}
}

// TextScore is the similarity of two texts. Every member is in 0..1; a part that neither text
// has is 0 and does not count.
type TextScore struct {
	Similarity float64 `json:"similarity"`
	Words      float64 `json:"words"`
	Characters float64 `json:"characters"`
	Metadata   float64 `json:"metadata"`
}

// CompareTexts returns the 60/30/10 similarity of AAP section 8.3:
//
//	(0.60·words + 0.30·characters + 0.10·metadata) / (sum of the weights of the parts that either text has)
//
// words is the cosine of TF-IDF vectors over words and pairs of neighbouring words, characters
// is the cosine over sequences of 3, 4 and 5 characters, and metadata is the cosine of the
// structural features. A word is a run of letters and digits. Both text parts read the text in
// lower case, with each run of white space as one space. A term that occurs tf times has weight
// tf·idf with idf = 1 + ln(3/(1+df)), where df is the number of the two texts in which it
// occurs: idf is 1 for a shared term and 1.405 for any other.
//
// The result is symmetric to the last bit, and exactly 1 for a text and itself, also if it is
// empty. The error says that a text is longer than MaxTextBytes.
func CompareTexts(a, b Text) (TextScore, error) {
	for _, t := range []Text{a, b} {
		if len(t.Text) > MaxTextBytes {
			return TextScore{}, fmt.Errorf("a text of %d bytes: at most %d are compared", len(t.Text), MaxTextBytes)
		}
	}
	foldedA, foldedB := fold(a.Text), fold(b.Text)
	var s TextScore
	var sum, weights float64
	for _, part := range []struct {
		weight float64
		into   *float64
		of     pair
	}{
		{wordWeight, &s.Words, comparedTerms(wordTerms(foldedA), wordTerms(foldedB))},
		{characterWeight, &s.Characters, comparedTerms(characterTerms(foldedA), characterTerms(foldedB))},
		{metadataWeight, &s.Metadata, comparedFeatures(a.Metadata, b.Metadata)},
	} {
		if part.of.empty() {
			continue
		}
		*part.into = part.of.cosine()
		sum += part.weight * *part.into
		weights += part.weight
	}
	s.Similarity = 1
	if weights > 0 {
		s.Similarity = sum / weights
	}
	return s, nil
}

// pair holds the sums from which the cosine of two vectors is computed.
type pair struct{ dot, squareA, squareB float64 }

func (p pair) empty() bool { return p.squareA == 0 && p.squareB == 0 }

// cosine returns 0 where one of the two vectors is empty.
func (p pair) cosine() float64 {
	if p.squareA == 0 || p.squareB == 0 {
		return 0
	}
	return min(1, p.dot/math.Sqrt(p.squareA*p.squareB))
}

// comparedTerms sums integers, for shared and unshared terms separately, so the order of terms
// does not matter.
func comparedTerms(a, b map[string]int) pair {
	alone := 1 + math.Log(3.0/2)
	dot, sharedA, ownA := 0, 0, 0
	for term, tf := range a {
		if other, shared := b[term]; shared {
			dot, sharedA = dot+tf*other, sharedA+tf*tf
		} else {
			ownA += tf * tf
		}
	}
	sharedB, ownB := 0, 0
	for term, tf := range b {
		if _, shared := a[term]; shared {
			sharedB += tf * tf
		} else {
			ownB += tf * tf
		}
	}
	square := func(shared, own int) float64 { return float64(shared) + float64(own)*alone*alone }
	return pair{float64(dot), square(sharedA, ownA), square(sharedB, ownB)}
}

// comparedFeatures sums in the order of the keys.
func comparedFeatures(a, b Vector) pair {
	a, b = sorted(a), sorted(b)
	var p pair
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch order := cmp.Compare(a[i].Key, b[j].Key); {
		case order < 0:
			i++
		case order > 0:
			j++
		default:
			p.dot += a[i].Weight * b[j].Weight
			i, j = i+1, j+1
		}
	}
	p.squareA, p.squareB = square(a), square(b)
	return p
}

func sorted(v Vector) Vector {
	return slices.SortedFunc(slices.Values(v), func(a, b Feature) int { return cmp.Compare(a.Key, b.Key) })
}

func square(v Vector) (sum float64) {
	for _, f := range v {
		sum += f.Weight * f.Weight
	}
	return sum
}

// fold returns text in lower case, with each run of white space as one space.
func fold(text string) string {
	return strings.Join(strings.Fields(strings.ToLower(text)), " ")
}

// wordTerms counts words and pairs of neighbouring words.
func wordTerms(folded string) map[string]int {
	terms, before := map[string]int{}, ""
	for word := range strings.FieldsFuncSeq(folded, func(r rune) bool { return !inWord(r) }) {
		terms[word]++
		if before != "" {
			terms[before+" "+word]++
		}
		before = word
	}
	return terms
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// characterTerms counts sequences of 3 to 5 characters.
func characterTerms(folded string) map[string]int {
	terms := map[string]int{}
	var starts []int // of every character, and the end
	for at := range folded {
		starts = append(starts, at)
	}
	starts = append(starts, len(folded))
	for size := shortestGram; size <= longestGram; size++ {
		for i := 0; i+size < len(starts); i++ {
			terms[folded[starts[i]:starts[i+size]]]++
		}
	}
	return terms
}
