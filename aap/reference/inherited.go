package reference

import "strings"

// function represents the inherited functions of JavaScript values, such as toString.
type function struct{}

// The names that values inherit, by the kind of value.
var (
	ofObjects = setOf(strings.Fields(`constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString
		valueOf __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__`))
	ofArrays = setOf(strings.Fields(`at concat copyWithin entries every fill filter find findIndex findLast findLastIndex
		flat flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice
		some sort splice toReversed toSorted toSpliced unshift values with`))
	ofStrings = setOf(strings.Fields(`anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor
		fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match matchAll normalize padEnd
		padStart repeat replace replaceAll search slice small split startsWith strike sub substr substring sup
		toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase toWellFormed trim trimEnd trimLeft trimRight trimStart`))
	ofNumbers = setOf([]string{"toExponential", "toFixed", "toPrecision"})
)

// inherits reports whether every value of v's kind has a member of that name.
func inherits(v any, name string) bool {
	switch v.(type) {
	case nil, Undefined:
		return false
	case []any:
		return ofArrays[name] || ofObjects[name]
	case string:
		return ofStrings[name] || ofObjects[name]
	case float64:
		return ofNumbers[name] || ofObjects[name]
	}
	return ofObjects[name]
}
