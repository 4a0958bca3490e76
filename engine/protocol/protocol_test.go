package protocol

import (
	"slices"
	"strings"
	"testing"
)

func TestParseIsTheInverseOfWords(t *testing.T) {
	want := Arguments{Library: "/cache/libchdb.so", Dir: "/data/engine"}
	if got, err := Parse(want.Words()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	good := Arguments{Library: "l", Dir: "d"}.Words()
	for _, words := range [][]string{nil, good[1:], append(slices.Clone(good), "more"), {version + "0", "l", "d"}} {
		if got, err := Parse(words); err == nil || !strings.Contains(err.Error(), "different versions") {
			t.Errorf("%q: %+v, error %v", words, got, err)
		}
	}
}
