package schema

// Nesting returns how many levels of objects and arrays a JSON text has, and how many objects and arrays.
// It reads brackets and strings only: other code checks whether the text is JSON.
func Nesting(text []byte) (deepest, values int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			values++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest, values
}
