package aivs

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// The time that decides whether a key was valid is parsed in every form of RFC 3339.
func TestTimesOfForeignManifests(t *testing.T) {
	key := testKey("k")
	for text, want := range map[string]string{
		"2026-01-31T12:00:00Z": "2026-01-31T12:00:00Z", "2026-01-31t12:00:00z": "2026-01-31T12:00:00Z",
		"2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z", "2026-01-31T12:00:60Z": "", "yesterday": "",
	} {
		files := foreignFiles(key)
		files[manifestFile] = strings.Replace(files[manifestFile], `{`, `{"exported_at":"`+text+`",`, 1)
		asked := ""
		report := judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(files)...)), Options{Signer: func(_ ed25519.PublicKey, at time.Time) error {
			asked = at.Format(time.RFC3339)
			return nil
		}})
		if asked != want || report.Intact != (want != "") {
			t.Errorf("%s: the key was asked for at %q, want %q; intact %v", text, asked, want, report.Intact)
		}
	}
}
