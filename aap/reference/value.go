package reference

import (
	"fmt"
	"unicode/utf16"
)

// Error says where and why the SDK would throw.
type Error struct {
	Path   string // dotted path in the request, such as "trace.decision"
	Reason string
}

// Error returns the place and the reason.
func (e *Error) Error() string { return e.Path + ": " + e.Reason }

// catch turns a thrown value into an error; every exported function defers it.
func catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}

// value is one place in a generic tree. Its methods read it as JavaScript would, and throw an
// *Error where JavaScript throws a TypeError.
type value struct {
	v    any
	path string
}

func (n value) throw(format string, args ...any) {
	panic(&Error{Path: n.path, Reason: fmt.Sprintf(format, args...)})
}

// get reads a member. It returns undefined where there is none, and throws for null and
// undefined.
func (n value) get(name string) value {
	if n.missing() {
		n.throw("%s, where an object with %q is needed", n.kind(), name)
	}
	return n.try(name)
}

// try reads a member, and returns undefined for null and undefined (optional chaining). It also
// finds inherited members, elements and lengths.
func (n value) try(name string) value {
	member := value{v: Undefined{}, path: n.path + "." + name}
	if _, list := n.v.([]any); list {
		member.path = n.path + "[" + name + "]"
	}
	if own, ok := ownMember(n.v, name); ok {
		member.v = own
	} else if inherits(n.v, name) {
		member.v = function{}
	}
	return member
}

// ownMember returns the member that v itself has under a name.
func ownMember(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *Object:
		member, ok := v.members[name]
		return member, ok
	case []any:
		if name == "length" {
			return float64(len(v)), true
		}
		if i, ok := arrayIndex(name); ok && i < len(v) {
			return v[i], true
		}
	case string:
		return ownOfString(v, name)
	}
	return nil, false
}

func ownOfString(s, name string) (any, bool) {
	if name != "length" {
		if _, ok := arrayIndex(name); !ok {
			return nil, false
		}
	}
	units := utf16.Encode([]rune(s))
	if name == "length" {
		return float64(len(units)), true
	}
	if i, ok := arrayIndex(name); ok && i < len(units) {
		return string(utf16.Decode(units[i : i+1])), true
	}
	return nil, false
}

// or returns n, or other where n is null or undefined.
func (n value) or(other value) value {
	if n.missing() {
		return other
	}
	return n
}

// orEmpty returns n's value, or "" where n is null or undefined.
func (n value) orEmpty() any {
	if n.missing() {
		return ""
	}
	return n.v
}

// each returns the elements of an array or the characters of a text. It throws for all other
// values.
func (n value) each() []value {
	var elements []value
	switch v := n.v.(type) {
	case []any:
		for i, element := range v {
			elements = append(elements, value{v: element, path: fmt.Sprintf("%s[%d]", n.path, i)})
		}
	case string:
		for i, char := range v {
			elements = append(elements, value{v: string(char), path: fmt.Sprintf("%s[%d]", n.path, i)})
		}
	default:
		n.throw("%s cannot be iterated over", n.kind())
	}
	return elements
}

// eachOrNone is each, but returns nothing where n is null or undefined.
func (n value) eachOrNone() []value {
	if n.missing() {
		return nil
	}
	return n.each()
}

// text returns a string and throws for all other values.
func (n value) text() string {
	s, ok := n.v.(string)
	if !ok {
		n.throw("%s is not a string", n.kind())
	}
	return s
}

// is reports whether n is exactly the string s.
func (n value) is(s string) bool {
	text, ok := n.v.(string)
	return ok && text == s
}

func (n value) undefined() bool {
	_, ok := n.v.(Undefined)
	return ok
}

// missing reports whether n is null or undefined.
func (n value) missing() bool { return n.v == nil || n.undefined() }

// kind describes n for an error.
func (n value) kind() string {
	switch v := n.v.(type) {
	case nil:
		return "null"
	case Undefined:
		return "absent"
	case *Object:
		return "an object"
	case []any:
		return "an array"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	}
	return n.string()
}
