package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// subject is a kind of record that both a schema and a decoder know.
type subject struct {
	schema   string
	decode   func([]byte) error
	examples []string
}

var subjects = []subject{
	{"ap-trace", func(raw []byte) error { _, err := schema.Admit("", raw); return err }, []string{fullTrace}},
	{"alignment-card", func(raw []byte) error { _, err := schema.DecodeCard(raw); return err }, []string{fullCard, unifiedCard}},
	{"value-coherence", func(raw []byte) error { _, err := schema.DecodeHandshake(raw); return err },
		[]string{cardRequest, cardResponse, coherenceCheck, coherenceResult}},
}

// unsayable are the rules that no JSON Schema can say, by what the decoders say
// of a record that breaks them. The list is closed: any other difference is a
// fault of a schema or of a decoder.
var unsayable = map[string]*regexp.Regexp{
	"one of the option_ids is selected":         regexp.MustCompile(`is the option_id of no alternative$`),
	"option_ids are unique":                     regexp.MustCompile(`is the option_id of an earlier alternative too$`),
	"key_ids are unique":                        regexp.MustCompile(`is the key_id of an earlier key too$`),
	"a length is counted in bytes":              regexp.MustCompile(`^\d+ bytes, at most 512 are allowed$`),
	"a record has so many bytes":                regexp.MustCompile(`^\d+ bytes, (a trace|a card|a handshake message) may have \d+$`),
	"times are those of a range":                regexp.MustCompile(`is outside 1970\.\.2105$`),
	"no time is the one that stands for none":   regexp.MustCompile(`stands for no time at all$`),
	"an integer has neither point nor exponent": regexp.MustCompile(`^want an integer of at least 0$`),
	"numbers are those of a 64-bit float":       regexp.MustCompile(`beyond the range of a 64-bit float`),
	"nesting has a depth":                       regexp.MustCompile(`^nested deeper than 64 levels$`),
	"names in an object are unique":             regexp.MustCompile(`^duplicate object member name`),
	"text is UTF-8":                             regexp.MustCompile(`^invalid (UTF-8|surrogate pair)`),
	"a card expires after its issue":            regexp.MustCompile(`^is not after issued_at$`),
	"declared values are defined":               regexp.MustCompile(`is no standard value and has no definition$`),
	"no value subsumes itself":                  regexp.MustCompile(`cannot subsume itself$`),
	"no action is bounded and forbidden":        regexp.MustCompile(`is one of bounded_actions too`),
}

// mutate changes one thing in a tree: a member is dropped, another type or
// value takes its place, or a foreign member is added.
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

// change returns tree with another value, or none, at path.
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

// texts stand in for a text, for another type of value, and for enums.
var texts = []string{"", "x", "~utc-2026-01-01", "unspecified", "escalate", "approved", "off", "thrift", "search", "A",
	"alignment_card_request", "coherence_result", strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("é", 400), "2026-02-30T00:00:00Z",
	"2026-02-28T24:00:00Z", "2026-01-31T12:30:00", "2026-01-31", "2026-01-31t12:30:00z", "2026-01-31T12:30:60Z", "2026-01-31T1:30:00Z",
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

// repeated is an array of so many like the old one's first element, or like old.
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

// with adds a member to an object; another value becomes the member.
func with(old any, name string) any {
	if object, ok := old.(map[string]any); ok {
		object = maps.Clone(object)
		object[name] = map[string]any{"description": "own"}
		return object
	}
	return map[string]any{name: old}
}

// Every single change of a kind to every place of a record is judged alike by
// schema and decoder.
func TestSchemasAndDecodersAgreeOnEveryPlace(t *testing.T) {
	edits := map[string]func(any) (any, bool){
		"drop":          func(any) (any, bool) { return nil, false },
		"foreign":       func(old any) (any, bool) { return with(old, "own"), true },
		"deep nesting":  func(old any) (any, bool) { return nested(old, 70), true },
		"nested":        func(old any) (any, bool) { return nested(old, 1), true },
		"empty list":    func(old any) (any, bool) { return repeated(old, 0), true },
		"twice":         func(old any) (any, bool) { return repeated(old, 2), true },
		"empty object":  func(any) (any, bool) { return map[string]any{}, true },
		"too long text": func(any) (any, bool) { return strings.Repeat("x", 513), true },
	}
	for name, value := range map[string]any{"null": nil, "true": true, "empty text": "", "wrong word": "x", "time": "2026-01-31T12:00:00Z",
		"negative": json.Number("-1"), "zero": json.Number("0"), "fraction": json.Number("0.5"), "above one": json.Number("1.5"), "huge": json.Number("1e400")} {
		edits[name] = func(any) (any, bool) { return value, true }
	}
	for _, s := range subjects {
		oracle := compile(t, s.schema, nil)
		for _, example := range s.examples {
			tree := parse(t, []byte(example))
			for _, path := range placesOf(tree, nil) {
				for name, edit := range edits {
					if name == "drop" && len(path) == 0 {
						continue
					}
					mutant := change(tree, path, edit)
					raw, err := json.Marshal(mutant)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, raw, oracle.Validate(mutant), s.decode(raw))
				}
			}
		}
	}
}

// What a schema refuses, its decoder refuses, and the other way round, but for
// the rules that no schema can say.
func TestSchemasAndDecodersAgree(t *testing.T) {
	for _, s := range subjects {
		oracle := compile(t, s.schema, nil)
		for i, example := range s.examples {
			tree := parse(t, []byte(example))
			t.Run(fmt.Sprintf("%s %d", s.schema, i), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					mutant := tree
					for range rapid.IntRange(0, 3).Draw(t, "mutations") {
						mutant = mutate(t, mutant)
					}
					raw, err := json.Marshal(mutant)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, raw, oracle.Validate(mutant), s.decode(raw))
				})
			})
		}
	}
}

// tester is what *testing.T and *rapid.T have in common here.
type tester interface {
	Fatalf(format string, args ...any)
}

func compare(t tester, raw []byte, schemaErr, decodeErr error) {
	if schemaErr != nil && decodeErr == nil {
		t.Fatalf("the decoder takes %s, but the schema: %v", raw, schemaErr)
	}
	var refusal *schema.Refusal
	if schemaErr != nil || !errors.As(decodeErr, &refusal) {
		return
	}
	for _, fault := range refusal.Faults {
		if ruleOf(fault.Message) == "" {
			t.Fatalf("the schema takes %s, but the decoder: %s: %s", raw, fault.Pointer, fault.Message)
		}
	}
}

// ruleOf returns the unsayable rule that a message is about, empty if none.
func ruleOf(message string) string {
	for rule, says := range unsayable {
		if says.MatchString(message) {
			return rule
		}
	}
	return ""
}

// Each rule of the list is needed: there is a record that the schema takes and
// the decoder refuses for it alone.
func TestUnsayableRulesAreRules(t *testing.T) {
	replace := func(record, old, by string) string {
		if !strings.Contains(record, old) {
			t.Fatalf("no %s in the record", old)
		}
		return strings.Replace(record, old, by, 1)
	}
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	key := `{"key_id": "k", "algorithm": "Ed25519", "public_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}`
	broken := map[string][]string{
		"one of the option_ids is selected":         {replace(fullTrace, `"selected": "A"`, `"selected": "Z"`)},
		"option_ids are unique":                     {replace(fullTrace, `"option_id": "B"`, `"option_id": "A"`)},
		"key_ids are unique":                        {replace(fullCard, `"keys": [`, `"keys": [`+key+`,`)},
		"a length is counted in bytes":              {replace(fullTrace, "tr-1", strings.Repeat("é", 400)), replace(fullCard, "ac-1", strings.Repeat("é", 400))},
		"a record has so many bytes":                {replace(fullTrace, "whatever", strings.Repeat("x", schema.MaxTraceBytes)), replace(fullCard, "thrift\"]", `thrift"], "x": "`+strings.Repeat("x", schema.MaxCardBytes)+`"`), replace(cardRequest, `"own": {}`, `"own": "`+strings.Repeat("x", schema.MaxHandshakeBytes)+`"`)},
		"times are those of a range":                {replace(fullTrace, "2026-01-31T12:30", "9999-01-31T12:30"), replace(fullCard, "2026-01-01", "1969-01-01"), replace(cardRequest, "2026", "2106")},
		"no time is the one that stands for none":   {replace(fullTrace, "2026-01-31T12:31:00Z", "0001-01-01T00:00:00Z")},
		"an integer has neither point nor exponent": {replace(fullTrace, `"conversation_turn": 3`, `"conversation_turn": 3.0`), replace(fullCard, "90,", "9e1,")},
		"numbers are those of a 64-bit float":       {replace(fullTrace, "45.5", "1e400"), replace(fullCard, `"own": 1`, `"own": -1e400`), replace(cardRequest, `"own": {}`, `"own": {"x": 1e400}`)},
		"nesting has a depth":                       {replace(fullTrace, "[true]", deep), replace(fullCard, `"own": 1`, `"own": `+deep), replace(cardRequest, `"own": {}`, `"own": `+deep)},
		"names in an object are unique":             {replace(fullTrace, `"own":`, `"own": 1, "own":`), replace(fullCard, `"own":`, `"own": 1, "own":`), replace(cardRequest, `"own":`, `"own": 1, "own":`)},
		"text is UTF-8":                             {replace(fullTrace, "whatever", "\xff"), replace(fullTrace, "whatever", `\ud800`), replace(fullCard, "spend little", "\xff"), replace(cardRequest, "compare", `\udc00x`)},
		"a card expires after its issue":            {replace(fullCard, "2026-12-31", "2026-01-01")},
		"declared values are defined":               {replace(fullCard, `"honesty"`, `"speed"`), replace(cardResponse, `"honesty"`, `"speed"`)},
		"no value subsumes itself":                  {replace(fullCard, "saving", "thrift")},
		"no action is bounded and forbidden":        {replace(fullCard, `"delete"`, `"search"`)},
	}
	for rule := range unsayable {
		if len(broken[rule]) == 0 {
			t.Errorf("no record breaks the rule that %s", rule)
		}
		for _, record := range broken[rule] {
			checkBroken(t, rule, record)
		}
	}
}

// A number counts as the 64-bit float next to it: one that is out of a range by
// less than that is within. An oracle that counts exactly refuses it.
func TestRangesAreThoseOfFloats(t *testing.T) {
	oracle := compile(t, "ap-trace", nil)
	for _, number := range []string{"1.00000000000000000001", "-1e-400"} {
		record := strings.Replace(fullTrace, "0.85", number, 1)
		if _, err := schema.Admit("", []byte(record)); err != nil {
			t.Errorf("score %s: %v", number, err)
		}
		if oracle.Validate(parse(t, []byte(record))) == nil {
			t.Errorf("score %s: the oracle counts in floats as well; this test is not needed", number)
		}
	}
}

func checkBroken(t *testing.T, rule, record string) {
	t.Helper()
	s := subjects[0]
	switch {
	case strings.Contains(record, "message_type"):
		s = subjects[2]
	case strings.Contains(record, "issued_at"):
		s = subjects[1]
	}
	if err := compile(t, s.schema, nil).Validate(parse(t, []byte(record))); err != nil {
		t.Errorf("%s: the schema can say it: %v", rule, err)
	}
	var refusal *schema.Refusal
	if err := s.decode([]byte(record)); !errors.As(err, &refusal) {
		t.Errorf("%s: not refused (%v)", rule, err)
		return
	}
	for _, fault := range refusal.Faults {
		if got := ruleOf(fault.Message); got != rule {
			t.Errorf("%s: %s: %s (%s)", rule, fault.Pointer, fault.Message, got)
		}
	}
}
