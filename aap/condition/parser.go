package condition

import (
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// Parse compiles an expression. The error is a *SyntaxError.
func Parse(source string) (*Expr, error) {
	p := &parser{lexer: lexer{source: source}}
	if len(source) > MaxLength {
		return nil, p.fail(0, "%d bytes, a condition may have %d", len(source), MaxLength)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.condition(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.unexpected("and, or, or the end")
	}
	e := newExpr(root)
	if n := len(e.String()); n > MaxLength {
		return nil, p.fail(0, "%d bytes when printed, a condition may have %d", n, MaxLength)
	}
	return e, nil
}

type parser struct {
	lexer
	token token // the next token, not yet consumed
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

func (p *parser) unexpected(want string) *SyntaxError {
	return p.fail(p.token.at, "%s is expected here, not %s", want, p.token)
}

// condition reads a condition that is nested in depth parentheses.
func (p *parser) condition(depth int) (node, error) {
	return p.chain(true, func() (node, error) {
		return p.chain(false, func() (node, error) { return p.primary(depth) })
	})
}

// chain reads operands separated by "or" or by "and".
func (p *parser) chain(or bool, operand func() (node, error)) (node, error) {
	word := "and"
	if or {
		word = "or"
	}
	var operands []node
	for {
		n, err := operand()
		if err != nil {
			return nil, err
		}
		operands = append(operands, n)
		if p.token.kind != tokenName || p.token.text != word {
			return join(or, operands), nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

func (p *parser) primary(depth int) (node, error) {
	if p.token.kind != tokenOpen {
		return p.comparison()
	}
	if depth == MaxDepth {
		return nil, p.fail(p.token.at, "parentheses are nested deeper than %d", MaxDepth)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.condition(depth + 1)
	if err != nil {
		return nil, err
	}
	return n, p.expect(tokenClose, "`)`")
}

func (p *parser) expect(kind tokenKind, want string) error {
	if p.token.kind != kind {
		return p.unexpected(want)
	}
	return p.advance()
}

// comparison reads the last form of primary: a test of one field.
func (p *parser) comparison() (node, error) {
	if p.token.kind != tokenName {
		return nil, p.unexpected("a field")
	}
	name := p.token
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == tokenOpen {
		return p.call(name)
	}
	field, err := p.field(name)
	if err != nil {
		return nil, err
	}
	op, ok := operatorOf(p.token.text)
	if !ok || p.token.kind != tokenOperator && p.token.kind != tokenName {
		return &test{field: field}, nil // the field alone
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.operand(field, op)
}

// call reads (field, value) after the name of a function.
func (p *parser) call(function token) (node, error) {
	op, ok := operatorOf(function.text)
	if !ok {
		return nil, p.fail(function.at, "%s is not a function: the functions are contains and matches", function)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind != tokenName {
		return nil, p.unexpected("a field")
	}
	field, err := p.field(p.token)
	if err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expect(tokenComma, "`,`"); err != nil {
		return nil, err
	}
	n, err := p.operand(field, op)
	if err != nil {
		return nil, err
	}
	return n, p.expect(tokenClose, "`)`")
}

// reserved are the words of the language; no field can have such a name.
var reserved = []string{"and", "or", "true", "false", "null", "contains", "matches"}

func (p *parser) field(name token) (Field, error) {
	if slices.Contains(reserved, name.text) {
		return Field{}, p.fail(name.at, "a field is expected here, not %s", name)
	}
	return newField(name.text), nil
}

// operand consumes the value that a field is compared with.
func (p *parser) operand(field Field, op operator) (node, error) {
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	t := &test{field: field, op: op, value: value}
	if op == matches {
		if value.Kind != String {
			return nil, p.unexpected("a pattern in quotes")
		}
		if t.pattern, err = newPattern(value.Text); err != nil {
			return nil, p.fail(p.token.at, "%v", err)
		}
	}
	t.byName = t.canMeanNameOnly()
	return t, p.advance()
}

func (p *parser) value() (Value, error) {
	switch t := p.token; {
	case t.kind == tokenText:
		return Text(strings.Clone(t.text)), nil
	case t.kind == tokenNumber:
		if _, err := strconv.ParseFloat(t.text, 64); err != nil {
			return Value{}, p.fail(t.at, "%s is beyond the range of a 64-bit float", t)
		}
		return Value{Kind: Number, Text: strings.Clone(t.text)}, nil
	case t.kind == tokenName && slices.Contains([]string{"true", "false", "null"}, t.text):
		return JSON([]byte(t.text)), nil
	case t.kind == tokenName:
		return Value{}, p.fail(t.at, "a value is expected here; put a text in quotes: \"%s\"", schema.Clip(t.text, excerpt))
	}
	return Value{}, p.unexpected("a value")
}
