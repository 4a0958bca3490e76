package keyring_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// canonicalize applies JCS with another implementation than the package's.
func canonicalize(t *testing.T, text []byte) []byte {
	t.Helper()
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return v
}
