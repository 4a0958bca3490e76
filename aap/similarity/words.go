package similarity

import "strings"

// minWordBytes is the length of the shortest word that counts.
const minWordBytes = 3

// stopWords are the words too common to tell one condition from another.
var stopWords = setOf(`the a an and or but in on at to for of with by from is are was were be been being
	have has had do does did will would could should may might must shall can
	this that these those it its as if then else`)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// words splits text as the SDKs do: lower case, everything but ASCII letters
// and digits a space, no short words, no stop words; repetitions stay.
func words(text string) []string {
	var out []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		if len(word) >= minWordBytes && !stopWords[word] {
			out = append(out, word)
		}
	}
	return out
}

func notWord(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
