package embedded

import (
	"os"
	"testing"
)

// A loss of power in the first seconds of a version that did not sync the file left it
// empty: it is made again. A file that says something else is not thrown away.
func TestEndpointAfterALossOfPower(t *testing.T) {
	for name, c := range map[string]struct {
		left string
		made bool
	}{
		"nothing":          {"", true},
		"zero bytes":       {"\x00\x00\x00\x00", true},
		"half of a file":   {`{"host": "127.0.0.1", "po`, false},
		"something else":   {"# a note", false},
		"zeros at the end": {"{}\x00\x00", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(endpointFile(dir), []byte(c.left), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := Settle(dir, "", 0)
		if (err == nil) != c.made {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if again, err := Settle(dir, "", 0); err != nil || again != made || made.Password == "" {
			t.Errorf("%s: %+v, then %+v, %v", name, made, again, err)
		}
	}
}
