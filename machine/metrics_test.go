package machine_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/machine"
)

// demandDocumented requires that docs/METRICS.md has each metric that a machine shows, with its type and
// its labels.
func demandDocumented(t *testing.T, m *machine.Machine) {
	t.Helper()
	text, err := os.ReadFile("../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(plumbline_[a-z0-9_]+)` \\| ([a-z]+) \\| ([a-z_, ]*) \\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Split(row[3], ", ")
		slices.Sort(labels)
		documented[row[1]] = row[2] + " " + strings.Join(labels, " ")
	}
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "plumbline_") {
			continue
		}
		shown++
		for _, metric := range family.GetMetric() {
			labels := []string{}
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName())
			}
			slices.Sort(labels)
			if got := strings.ToLower(family.GetType().String()) + " " + strings.Join(labels, " "); got != documented[family.GetName()] {
				t.Errorf("%s is a %s, METRICS.md says %q", family.GetName(), got, documented[family.GetName()])
			}
		}
	}
	if shown < 35 {
		t.Errorf("%d metrics are shown", shown)
	}
}
