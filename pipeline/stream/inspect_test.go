package stream

import (
	"os"
	"regexp"
	"testing"
)

// settingInSource matches the settings in the source of the checks.
var settingInSource = regexp.MustCompile(`(?:equal\(c, |unlimited\(c, |atLeast\(\w+, |weak\(|Setting: )"([a-z_.]+)"`)

func TestEverySettingHasAReason(t *testing.T) {
	found := 0
	for _, file := range []string{"inspect.go", "nodes.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range settingInSource.FindAllStringSubmatch(string(source), -1) {
			found++
			if (Weakness{Setting: match[1]}).Why() == "" {
				t.Errorf("%s: no reason is given for %s", file, match[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d settings in the source: the expression no longer matches them", found)
	}
}
