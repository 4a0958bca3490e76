package condition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// pattern is the compiled value of matches, in RE2 syntax: the time it takes is
// linear in the text.
type pattern struct {
	regexp       *regexp.Regexp
	instructions int  // about: what a byte of text costs
	looksAhead   bool // the character behind a match has a say in it: $, \b and the like
}

// newPattern compiles a pattern, bounded in length and in the size that
// repetitions blow it up to.
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

// instructions estimates the size of the compiled pattern without compiling it,
// which is what takes long where it is large.
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

// find tells whether the pattern matches in the first part of a text that is
// longer: a match at the cut does not count where what follows has a say in it.
func (p *pattern) find(part string) bool {
	if !p.looksAhead {
		return p.regexp.MatchString(part)
	}
	at := p.regexp.FindStringIndex(part)
	return at != nil && at[1] < len(part)
}
