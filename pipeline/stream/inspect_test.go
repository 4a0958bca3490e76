package stream

import (
	"os"
	"regexp"
	"testing"
)

// settingInSource matches the settings in the source of the checks.
var settingInSource = regexp.MustCompile(`(?:equal\(c, |unlimited\(c, |atLeast\(\w+, |weak\(|Setting: )"([a-z_.]+)"`)

func TestEverySettingHasAReason(t *testing.T) {
	source, err := os.ReadFile("inspect.go")
	if err != nil {
		t.Fatal(err)
	}
	matches := settingInSource.FindAllStringSubmatch(string(source), -1)
	for _, match := range matches {
		if (Weakness{Setting: match[1]}).Why() == "" {
			t.Errorf("no reason is given for %s", match[1])
		}
	}
	if len(matches) < 30 {
		t.Errorf("found %d settings in the source: the expression no longer matches them", len(matches))
	}
}
