package condition

import (
	"strings"
	"testing"
)

func TestCursorFind(t *testing.T) {
	const record = ` {"a": {"b\u0061r": [1, {"x": 2}], "q": "{\"z\":1}"}, "n": null, "e": {}} `
	var c Cursor
	for path, want := range map[string]string{
		"a.bar": `[1, {"x": 2}]`, "n": "null", "e": "{}", "a.q": `"{\"z\":1}"`,
		"a.missing": "", "a.bar.x": "", "n.x": "", "e.x": "", "a.q.z": "", "b": "",
	} {
		got, ok := c.Find([]byte(record), strings.Split(path, "."))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", path, got, ok, want)
		}
	}
}

func TestCursorEach(t *testing.T) {
	var c Cursor
	var got []string
	c.Each([]byte(`[1, "a", [2], {"b": 3}]`), func(e []byte) bool {
		got = append(got, string(e))
		return len(got) < 3
	})
	if s := strings.Join(got, "|"); s != `1|"a"|[2]` {
		t.Errorf("got %s", s)
	}
	c.Each([]byte(`{"a":1}`), func([]byte) bool { t.Error("an object has no elements"); return false })
}

// Incomplete JSON holds no values, even where a part could be read.
func TestCursorFindsNothingInBrokenJSON(t *testing.T) {
	for _, broken := range []string{``, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":tru`, `{"b":tru`, `{"b":1`, `{"b":1 "a":2}`, `{"a":{"c":`} {
		for _, path := range [][]string{{"a"}, {"a", "c"}} {
			var c Cursor
			if got, ok := c.Find([]byte(broken), path); ok || got != nil {
				t.Errorf("%s, path %v: %q %v, want nothing", broken, path, got, ok)
			}
		}
	}
	var c Cursor
	c.Each([]byte(`[tru`), func(e []byte) bool { t.Errorf("a broken array has the element %q", e); return false })
}
