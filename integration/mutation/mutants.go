package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is one change to a package's source.
type mutant struct {
	file string // within the module
	line int
	in   string // the function
	what string // the changed source, on one line, and the kind of change
}

// key identifies the mutant independently of its line.
func (m *mutant) key() string { return fmt.Sprintf("%s: %s: %s", m.file, m.in, m.what) }

// edit replaces source from one offset to another.
type edit struct {
	from, to int
	text     string
	closes   bool // after an expression or a statement
	nth      int  // in the order of the visit
}

// finder finds the mutants of one file.
type finder struct {
	pkg     *packages.Package
	file    string // within the module
	source  []byte
	in      string
	first   int // number of the first mutant of the file
	mutants []mutant
	edits   []edit
}

func (f *finder) offset(p token.Pos) int { return f.pkg.Fset.Position(p).Offset }

// add records a mutant and returns its number.
func (f *finder) add(at ast.Node, what string) int {
	text := strings.Join(strings.Fields(string(f.source[f.offset(at.Pos()):f.offset(at.End())])), " ")
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	f.mutants = append(f.mutants, mutant{f.file, f.pkg.Fset.Position(at.Pos()).Line, f.in, fmt.Sprintf("%s [%s]", text, what)})
	return f.first + len(f.mutants) - 1
}

// around inserts text before and after a node.
func (f *finder) around(n ast.Node, before, behind string) {
	from, to := f.offset(n.Pos()), f.offset(n.End())
	f.edits = append(f.edits, edit{from: from, to: from, text: before}, edit{from: to, to: to, text: behind, closes: true})
}

// find visits the functions of the file.
func (f *finder) find(file *ast.File) {
	for _, declaration := range file.Decls {
		if d, ok := declaration.(*ast.FuncDecl); ok && d.Body != nil {
			f.in = nameOf(d)
			ast.Inspect(d.Body, f.visit)
		}
	}
	f.order()
}

// order sorts the edits. Nodes are visited from the outside to the inside. Of edits that
// open at one place, the outer comes first; of edits that close there, the inner.
func (f *finder) order() {
	for i := range f.edits {
		f.edits[i].nth = i
	}
	slices.SortFunc(f.edits, func(a, b edit) int {
		switch {
		case a.from != b.from:
			return a.from - b.from
		case a.closes != b.closes && a.closes:
			return -1
		case a.closes != b.closes:
			return 1
		case a.closes:
			return b.nth - a.nth
		}
		return a.nth - b.nth
	})
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if index, ok := receiver.(*ast.IndexExpr); ok {
		receiver = index.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

var flipped = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// binary mutates a comparison, a logical operator, or a sum of integers.
func (f *finder) binary(e *ast.BinaryExpr) {
	info := f.pkg.TypesInfo
	if info.Types[e].Value != nil { // a constant
		return
	}
	switch e.Op {
	case token.EQL, token.NEQ:
		if !isPlainBool(info.TypeOf(e)) {
			return
		}
		id := f.add(e, "negated")
		f.around(e, "((", fmt.Sprintf(") != mutantOn(%d))", id))
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.operator(e, f.add(e, fmt.Sprintf("%s for %s", flipped[e.Op], e.Op)))
	case token.LAND, token.LOR:
		if !isPlainBool(info.TypeOf(e.X)) || !isPlainBool(info.TypeOf(e.Y)) {
			return
		}
		other := token.LOR
		if e.Op == token.LOR {
			other = token.LAND
		}
		id := f.add(e, fmt.Sprintf("%s for %s", other, e.Op))
		on := fmt.Sprintf("mutantOn(%d)", id)
		f.around(e, "((", ") != "+on+")")
		f.around(e.X, "((", ") != "+on+")")
		f.around(e.Y, "((", ") != "+on+")")
	case token.ADD, token.SUB:
		if basic, ok := info.TypeOf(e).Underlying().(*types.Basic); ok && basic.Info()&types.IsInteger != 0 && basic.Info()&types.IsUntyped == 0 {
			f.operator(e, f.add(e, "+ and - exchanged"))
		}
	}
}

var functions = map[token.Token]string{token.LSS: "mutantLess", token.LEQ: "mutantAtMost", token.GTR: "mutantMore", token.GEQ: "mutantAtLeast",
	token.ADD: "mutantSum", token.SUB: "mutantDifference"}

// operator turns x op y into a call.
func (f *finder) operator(e *ast.BinaryExpr, id int) {
	f.around(e, fmt.Sprintf("%s(%d, ", functions[e.Op], id), ")")
	o := f.offset(e.OpPos)
	f.edits = append(f.edits, edit{from: o, to: o + len(e.Op.String()), text: ","})
}

// condition negates a condition that is no comparison: a call, a name.
func (f *finder) condition(e ast.Expr) {
	if _, binary := ast.Unparen(e).(*ast.BinaryExpr); binary || f.pkg.TypesInfo.Types[e].Value != nil || !isPlainBool(f.pkg.TypesInfo.TypeOf(e)) {
		return
	}
	id := f.add(e, "negated")
	f.around(e, "((", fmt.Sprintf(") != mutantOn(%d))", id))
}

// returned negates true and false in a return statement.
func (f *finder) returned(s *ast.ReturnStmt) {
	for _, result := range s.Results {
		if name, ok := result.(*ast.Ident); ok && (name.Name == "true" || name.Name == "false") && isPlainBool(f.pkg.TypesInfo.TypeOf(name)) {
			id := f.add(name, "negated")
			f.around(name, "(", fmt.Sprintf(" != mutantOn(%d))", id))
		}
	}
}

// statements removes single statements: a call, an assignment, ++ and --, break and
// continue.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "panic" {
					continue
				}
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE {
				continue
			}
		default:
			continue
		}
		id := f.add(s, "left out")
		f.around(s, fmt.Sprintf("if !mutantOn(%d) { ", id), " }")
	}
}

func isPlainBool(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// rewritten returns the source with all edits applied.
func (f *finder) rewritten() []byte {
	var out []byte
	at := 0
	for _, e := range f.edits {
		out = append(append(out, f.source[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, f.source[at:]...)
}
