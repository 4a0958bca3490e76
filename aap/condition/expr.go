package condition

import (
	"slices"
	"strconv"
	"strings"
)

// Expr is a compiled expression.
type Expr struct {
	root     node
	tests    int
	repeated int   // number of fields named more than once, at most maxRepeated
	only     *test // a test of the only field named; nil where there are several
	searches bool  // whether a test is contains or matches
}

// newExpr numbers the fields that are named more than once.
func newExpr(root node) *Expr {
	tests := map[string][]*test{}
	var order []string
	count, searches := 0, false
	root.visit(func(t *test) {
		count++
		searches = searches || t.op == contains || t.op == matches
		name := t.field.Name
		if tests[name] = append(tests[name], t); len(tests[name]) == 2 {
			order = append(order, name)
		}
	})
	e := &Expr{root: root, tests: count, repeated: min(len(order), maxRepeated), searches: searches}
	if len(tests) == 1 {
		root.visit(func(t *test) { e.only = t })
	}
	for i, name := range order[:e.repeated] {
		for _, t := range tests[name] {
			t.repeated = i + 1
		}
	}
	return e
}

// String returns an expression in canonical form, with its numbers as written. Parsing the
// result gives an equal Expr.
func (e *Expr) String() string {
	var b strings.Builder
	e.root.print(&b)
	return b.String()
}

// Field is a field reference.
type Field struct {
	Name string   // as written: "environment.locale"
	Path []string // its parts: "environment", "locale"
}

// newField splits a dotted name.
func newField(name string) Field {
	name = strings.Clone(name)
	return Field{Name: name, Path: strings.Split(name, ".")}
}

type operator uint8

const (
	truthy operator = iota // a field alone
	equal
	notEqual
	less
	lessOrEqual
	greater
	greaterOrEqual
	contains
	matches
)

var operatorWords = [...]string{"", "==", "!=", "<", "<=", ">", ">=", "contains", "matches"}

// operatorOf returns the operator of a word or sign, and false for any other text.
func operatorOf(word string) (operator, bool) {
	i := slices.Index(operatorWords[equal:], word)
	return equal + operator(i), i >= 0
}

// node is a part of an expression.
type node interface {
	holds(*Evaluator) bool
	print(*strings.Builder)
	visit(func(*test))
}

type (
	// chain is at least two operands joined by the same word, none of them a chain of that word.
	chain struct {
		or       bool // joined by "or"; otherwise by "and"
		operands []node
	}

	// test compares one field with one value.
	test struct {
		field    Field
		op       operator
		value    Value    // zero for truthy
		pattern  *pattern // of matches
		byName   bool     // of action_type: the text is no action type, and is compared with action_name too
		repeated int      // from 1: the number of the field among those named more than once; 0: named once
	}
)

// join makes a chain of operands. It flattens operands of its own kind.
func join(or bool, operands []node) node {
	if len(operands) == 1 {
		return operands[0]
	}
	c := &chain{or: or}
	for _, n := range operands {
		if inner, ok := n.(*chain); ok && inner.or == or {
			c.operands = append(c.operands, inner.operands...)
		} else {
			c.operands = append(c.operands, n)
		}
	}
	return c
}

func (c *chain) print(b *strings.Builder) {
	word := " and "
	if c.or {
		word = " or "
	}
	for i, n := range c.operands {
		if i > 0 {
			b.WriteString(word)
		}
		if inner, nested := n.(*chain); nested && inner.or {
			b.WriteByte('(')
			n.print(b)
			b.WriteByte(')')
			continue
		}
		n.print(b)
	}
}

func (c *chain) visit(f func(*test)) {
	for _, n := range c.operands {
		n.visit(f)
	}
}

func (t *test) visit(f func(*test)) { f(t) }

func (t *test) print(b *strings.Builder) {
	b.WriteString(t.field.Name)
	if t.op == truthy {
		return
	}
	b.WriteByte(' ')
	b.WriteString(operatorWords[t.op])
	b.WriteByte(' ')
	switch t.value.Kind {
	case Null:
		b.WriteString("null")
	case Bool:
		b.WriteString(strconv.FormatBool(t.value.Bool))
	case Number:
		b.WriteString(t.value.Text)
	default:
		b.WriteString(Quote(t.value.Text))
	}
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Quote returns s as a text of the language.
func Quote(s string) string { return `"` + escaper.Replace(s) + `"` }
