package reference

import "fmt"

// EngineVersion names this implementation of the SDK's behaviour.
const EngineVersion = "plumbline-reference/1"

// AlgorithmVersion is the SDK's own version of its algorithm.
const AlgorithmVersion = "1.2.0"

// Undefined is a value that is not there, as opposed to a present null.
type Undefined struct{}

// Error says where the SDK would have thrown, and why.
type Error struct {
	Path   string // dotted place in the request, such as "trace.decision"
	Reason string
}

// Error returns place and reason.
func (e *Error) Error() string { return e.Path + ": " + e.Reason }

// catch turns what a value threw into an error; it is deferred by every exported function.
func catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}

// value is one place in a loose tree. Its methods read it as JavaScript would
// and throw an *Error where JavaScript throws a TypeError.
type value struct {
	v    any
	path string
}

// function stands for what JavaScript objects inherit, such as toString.
type function struct{}

// inherited holds the names that every JavaScript object has.
var inherited = map[string]bool{
	"constructor": true, "hasOwnProperty": true, "isPrototypeOf": true, "propertyIsEnumerable": true,
	"toLocaleString": true, "toString": true, "valueOf": true, "__proto__": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
}

func (n value) throw(format string, args ...any) {
	panic(&Error{Path: n.path, Reason: fmt.Sprintf(format, args...)})
}

// get reads a member: undefined where there is none, thrown on null and undefined.
func (n value) get(name string) value {
	if n.missing() {
		n.throw("%s, where an object with %q is needed", n.kind(), name)
	}
	return n.try(name)
}

// try reads a member, and gives undefined on null and undefined (optional chaining).
func (n value) try(name string) value {
	member := value{v: Undefined{}, path: n.path + "." + name}
	if object, ok := n.v.(map[string]any); ok {
		if v, ok := object[name]; ok {
			member.v = v
		}
	}
	return member
}

// lookup is try for a name that the publisher chose: it sees inherited names too.
func (n value) lookup(name string) value {
	member := n.try(name)
	if _, object := n.v.(map[string]any); object && member.undefined() && inherited[name] {
		member.v = function{}
	}
	return member
}

// or is n, or other where n is null or undefined.
func (n value) or(other value) value {
	if n.missing() {
		return other
	}
	return n
}

// orEmpty is n's value, or "" where n is null or undefined.
func (n value) orEmpty() any {
	if n.missing() {
		return ""
	}
	return n.v
}

// each returns the elements of an array, or the characters of a text; it throws on all else.
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

// eachOrNone is each, and nothing where n is null or undefined.
func (n value) eachOrNone() []value {
	if n.missing() {
		return nil
	}
	return n.each()
}

// text returns a string and throws on all else.
func (n value) text() string {
	s, ok := n.v.(string)
	if !ok {
		n.throw("%s is not a string", n.kind())
	}
	return s
}

// is tells whether n is exactly the string s.
func (n value) is(s string) bool {
	text, ok := n.v.(string)
	return ok && text == s
}

func (n value) undefined() bool {
	_, ok := n.v.(Undefined)
	return ok
}

// missing tells whether n is null or undefined.
func (n value) missing() bool { return n.v == nil || n.undefined() }

// kind describes n for an error.
func (n value) kind() string {
	switch n.v.(type) {
	case nil:
		return "null"
	case Undefined:
		return "absent"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	return n.string()
}
