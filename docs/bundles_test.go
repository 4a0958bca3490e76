package docs

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
)

// Every member of the output of bundle verify is explained, and so is each dialect.
func TestReportsOfBundlesAreExplained(t *testing.T) {
	text, err := os.ReadFile("BUNDLES.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{aivs.DialectPlumbline, aivs.DialectNewer, aivs.DialectDraft, aivs.DialectSealed, aivs.DialectMonotonic, aivs.DialectConduit9, aivs.DialectUnknown}
	report := reflect.TypeFor[aivs.Report]()
	for i := range report.NumField() {
		if name, _, _ := strings.Cut(report.Field(i).Tag.Get("json"), ","); name != "-" {
			words = append(words, name)
		}
	}
	for _, word := range words {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("BUNDLES.md does not explain %s", word)
		}
	}
}
