package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// mutate makes one change to a tree: it drops a member, replaces it by another type or value,
// or adds an unknown member.
func mutate(t *rapid.T, tree any) any {
	places := placesOf(tree, nil)
	path := rapid.SampledFrom(places).Draw(t, "place")
	if len(path) > 0 && rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
		return change(tree, path, func(any) (any, bool) { return nil, false })
	}
	return change(tree, path, func(old any) (any, bool) { return replacement(t, old), true })
}

// placesOf lists the paths of all values in a tree, in a fixed order.
func placesOf(tree any, path []string) [][]string {
	places := [][]string{path}
	add := func(name string, child any) {
		places = append(places, placesOf(child, append(slices.Clone(path), name))...)
	}
	switch tree := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			add(name, tree[name])
		}
	case []any:
		for i := range tree {
			add(fmt.Sprint(i), tree[i])
		}
	}
	return places
}

// change returns tree with the value at path replaced or removed.
func change(tree any, path []string, f func(any) (any, bool)) any {
	if len(path) == 0 {
		changed, _ := f(tree)
		return changed
	}
	switch tree := tree.(type) {
	case map[string]any:
		tree = maps.Clone(tree)
		if len(path) > 1 {
			tree[path[0]] = change(tree[path[0]], path[1:], f)
		} else if changed, keep := f(tree[path[0]]); keep {
			tree[path[0]] = changed
		} else {
			delete(tree, path[0])
		}
		return tree
	case []any:
		i := slices.Index(places(len(tree)), path[0])
		tree = slices.Clone(tree)
		if len(path) > 1 {
			tree[i] = change(tree[i], path[1:], f)
		} else if changed, keep := f(tree[i]); keep {
			tree[i] = changed
		} else {
			tree = slices.Delete(tree, i, i+1)
		}
		return tree
	}
	panic("no such place")
}

func places(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// texts are replacements for texts, for values of other types, and for enums.
var texts = []string{"", "x", "~utc-2026-01-01", "unspecified", "escalate", "approved", "off", "thrift", "search", "A",
	"alignment_card_request", "coherence_result", strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("é", 400), "2026-02-30T00:00:00Z",
	"2026-02-28T24:00:00Z", "2026-01-31T12:30:00", "2026-01-31", "2026-01-31t12:30:00z", "2026-01-31T12:30:60Z", "2016-12-31T23:59:60Z",
	"2016-12-31t15:59:60.25-08:00", "2026-01-31T23:59:61Z", "2026-01-31T1:30:00Z",
	"2026-01-31T12:30:00,5Z", "2026-01-31T12:30:00+05:60", "2026-01-31T12:30:00+24:00", "2026-01-31T12:30:00-00:00", "0001-01-01T00:00:00Z",
	"1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "2026-01-31T12:30:00.123456789123Z", " 2026-01-31T12:30:00Z", "2026-01-31T12:30:00Z\n"}

var numbers = []json.Number{"0", "-0", "1", "-1", "1.5", "0.9999999999", "1.0000000001", "5.0", "1e2", "-1e-300", "1e400", "300",
	"36500", "36501", "9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808", "184467440737095516160"}

func replacement(t *rapid.T, old any) any {
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.SampledFrom(texts).Draw(t, "text")
	case 2, 3:
		return rapid.SampledFrom(numbers).Draw(t, "number")
	case 4:
		return rapid.Bool().Draw(t, "boolean")
	case 5:
		return repeated(old, rapid.SampledFrom([]int{0, 1, 2, 65, 257, 501, 1025, 4097}).Draw(t, "length"))
	case 6:
		return nested(old, rapid.SampledFrom([]int{1, 2, 50, 70}).Draw(t, "depth"))
	case 7:
		return with(old, rapid.SampledFrom([]string{"", "own", "type", "autonomy", "audit", "card_version", "signature"}).Draw(t, "name"))
	default:
		return map[string]any{}
	}
}

// repeated returns an array of that length, filled with the old array's first element, or with
// old.
func repeated(old any, length int) any {
	if array, ok := old.([]any); ok && len(array) > 0 {
		old = array[0]
	}
	return slices.Repeat([]any{old}, length)
}

func nested(old any, depth int) any {
	for range depth {
		old = []any{old}
	}
	return old
}

// with adds a member to an object. It wraps any other value in an object.
func with(old any, name string) any {
	if object, ok := old.(map[string]any); ok {
		object = maps.Clone(object)
		object[name] = map[string]any{"description": "own"}
		return object
	}
	return map[string]any{name: old}
}
