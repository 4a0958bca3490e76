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
