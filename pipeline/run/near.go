package run

import "fmt"

// maxDistance is the maximum edit distance at which a misspelt key is recognised.
const maxDistance = 2

// suggest returns ", did you mean …?" or "".
func (s *settings) suggest(key string) string {
	if near := s.nearest(key); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// nearest returns the known key with an edit distance of at most maxDistance from key, or "".
func (s *settings) nearest(key string) string {
	best, distance := "", maxDistance+1
	for _, flag := range s.order {
		if d := editDistance(key, yamlKey(flag)); d < distance {
			best, distance = yamlKey(flag), d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance: insertions, deletions and substitutions of
// bytes. Two exchanged neighbours count as two.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
