package condition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// pattern is the compiled value of matches, in RE2 syntax: its time is linear in the length of
// the text.
type pattern struct {
	regexp       *regexp.Regexp
	instructions int  // estimated cost of a byte of text
	looksAhead   bool // the character after a match matters: $, \b and similar
}

// newPattern compiles a pattern. It bounds the length, and the size with repetitions expanded.
func newPattern(source string) (*pattern, error) {
	if len(source) > MaxPattern {
		return nil, fmt.Errorf("%d bytes, a pattern may have %d", len(source), MaxPattern)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	p := &pattern{instructions: instructions(tree), looksAhead: looksAhead(tree)}
	if p.instructions > maxInstructions {
		return nil, errors.New("the pattern is too large once its repetitions are written out")
	}
	if p.regexp, err = regexp.Compile(source); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return p, nil
}

// instructions estimates the size of the compiled pattern without compiling it, since compiling
// a large pattern takes long.
func instructions(tree *syntax.Regexp) int {
	n := max(len(tree.Rune), 1)
	if tree.Op == syntax.OpCharClass {
		n = 1
	}
	for _, part := range tree.Sub {
		n += instructions(part)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return n
}

func looksAhead(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpEndText, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, part := range tree.Sub {
		if looksAhead(part) {
			return true
		}
	}
	return false
}

// find reports whether the pattern matches in part, the start of a longer text. A match at the
// end of part does not count where the next character matters.
func (p *pattern) find(part string) bool {
	if !p.looksAhead {
		return p.regexp.MatchString(part)
	}
	at := p.regexp.FindStringIndex(part)
	return at != nil && at[1] < len(part)
}
