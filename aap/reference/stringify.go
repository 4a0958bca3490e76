package reference

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// stringify is JavaScript's JSON.stringify, but members of objects are sorted.
func stringify(v any) string { return string(appendJSON(nil, v)) }

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		quoted, err := jsontext.AppendQuote(b, v)
		if err != nil { // invalid UTF-8, which decoding has replaced
			return append(b, `""`...)
		}
		return quoted
	case float64:
		return append(b, formatNumber(v)...)
	case bool:
		return strconv.AppendBool(b, v)
	case []string:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendJSON(b, v[i]) })
	case []any:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendJSON(b, v[i]) })
	case map[string]any:
		return appendObject(b, v)
	}
	return append(b, "null"...)
}

func appendList(b []byte, n int, element func([]byte, int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

func appendObject(b []byte, object map[string]any) []byte {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, name), ':')
		b = appendJSON(b, object[name])
	}
	return append(b, '}')
}
