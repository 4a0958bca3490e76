package reconcile_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/reconcile"
)

// A difference is one line, also where it has no place.
func TestDifferencesAreOneLine(t *testing.T) {
	for want, d := range map[string]reconcile.Difference{
		"log_broken: no checkpoint; look": {Kind: reconcile.LogBroken, What: "no checkpoint", Remedy: "look"},
		`bundle_link: agent "a" session "s\n" file "f" part 2 sequence 3: w; r`: {
			Kind: reconcile.BundleLink, AgentID: "a", SessionID: "s\n", File: "f", Part: 2, Sequence: 3, What: "w", Remedy: "r"},
	} {
		if got := d.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
