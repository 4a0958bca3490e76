package schema

import (
	"errors"
	"testing"
)

func TestCutMember(t *testing.T) {
	for _, c := range []struct{ object, rest, value string }{
		{`{}`, `{}`, ``},
		{`{"x":1}`, `{}`, `1`},
		{` {"a":[{"x":0}] , "x" : {"y":"}"} } `, `{"a":[{"x":0}] }`, `{"y":"}"}`},
		{`{ "x": null, "b": 2 }`, `{ "b": 2 }`, `null`},
		{"{\"a\":1,\n  \"x\":2,\n  \"b\":3}", "{\"a\":1,\n  \"b\":3}", `2`},
		{`{"\u0078":1,"b":2}`, `{"b":2}`, `1`},
		{`{"X":1}`, `{"X":1}`, ``},
	} {
		rest, value, err := CutMember([]byte(c.object), "x")
		if err != nil || string(rest) != c.rest || string(value) != c.value {
			t.Errorf("%s: got %s and %s (%v), want %s and %s", c.object, rest, value, err, c.rest, c.value)
		}
	}
}

func TestCutMemberRemovesWhatPutMemberAdded(t *testing.T) {
	for _, object := range []string{`{}`, `{ }`, `{"a":1}`, "{\n\t\"b\": [1, 2],\n\t\"a\": {}\n}", `{"x":{"x":1}}`, `{"é":"\u00e9"}`} {
		with, err := PutMember([]byte(object), "new", []byte(`{"x": "y"}`))
		if err != nil {
			t.Fatal(err)
		}
		rest, value, err := CutMember(with, "new")
		if err != nil || string(rest) != object || string(value) != `{"x": "y"}` {
			t.Errorf("%s became %s and then %s with %s (%v)", object, with, rest, value, err)
		}
	}
}

func TestPutMemberReplaces(t *testing.T) {
	got, err := PutMember([]byte(`{"x":1, "a":2}`), "x", []byte(`3`))
	if err != nil || string(got) != `{ "a":2,"x":3}` {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestMembersOfObjectsOnly(t *testing.T) {
	for _, text := range []string{``, ` `, `[]`, `1`, `{`, `{"a"}`, `{"a":1,}`, `{"a":1} {}`, `{"a":1,"a":2}`, `{"x":1,"b":}`, "{\"a\":\"\xff\"}"} {
		if _, _, err := CutMember([]byte(text), "x"); !errors.Is(err, ErrNoObject) {
			t.Errorf("cut %q: got %v", text, err)
		}
		if _, err := PutMember([]byte(text), "x", []byte(`1`)); !errors.Is(err, ErrNoObject) {
			t.Errorf("put %q: got %v", text, err)
		}
	}
}
