package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// alertRules is the part of a file of Prometheus rules that the tests need.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// The metrics and labels of an expression: names that begin with plumbline_, and words before a
// comparison within braces or in a list of by.
var (
	metricInRule = regexp.MustCompile(`plumbline_[a-z0-9_]+`)
	labelInRule  = regexp.MustCompile(`(?:\{|, ?)([a-z_]+)=~?"|by \(([a-z_, ]+)\)`)
	metricRow    = regexp.MustCompile("(?m)^\\| `(plumbline_[a-z0-9_]+)` \\| ([a-z]+) \\| ([a-z_, ]*) \\|")
	section      = regexp.MustCompile(`(?m)^## (Plumbline[A-Za-z]+)$`)
)

// Every alert has an expression over metrics and labels that METRICS.md lists, a duration, a
// severity, a summary, a test in which it fires, and its section in RUNBOOK.md; and RUNBOOK.md has
// no other sections. make alerts runs the tests.
func TestAlertsAreDocumented(t *testing.T) {
	var rules alertRules
	if err := yaml.Unmarshal([]byte(read(t, "../deploy/prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "METRICS.md"), -1) {
		labels[row[1]] = append(strings.Split(row[3], ", "), "job", "instance")
		if row[2] == "histogram" {
			labels[row[1]+"_bucket"] = append(labels[row[1]], "le")
		}
	}
	var sections, alerts []string
	for _, match := range section.FindAllStringSubmatch(read(t, "RUNBOOK.md"), -1) {
		sections = append(sections, match[1])
	}
	tests := read(t, "../deploy/prometheus/alerts_test.yml")
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if !strings.Contains(tests, `alertname="`+rule.Alert+`"`) && !strings.Contains(tests, "alertname: "+rule.Alert+"\n        exp_alerts: [{") {
				t.Errorf("%s: alerts_test.yml has no series that raises it", rule.Alert)
			}
			alerts = append(alerts, rule.Alert)
			if link := "docs/RUNBOOK.md#" + strings.ToLower(rule.Alert); !strings.HasSuffix(rule.Annotations["runbook_url"], link) {
				t.Errorf("%s: runbook_url is %q, want one that ends with %s", rule.Alert, rule.Annotations["runbook_url"], link)
			}
			if rule.For == "" || rule.Annotations["summary"] == "" || !slices.Contains([]string{"warning", "critical"}, rule.Labels["severity"]) {
				t.Errorf("%s: for, summary or severity is missing: %+v", rule.Alert, rule)
			}
			metrics := metricInRule.FindAllString(rule.Expr, -1)
			if len(metrics) == 0 && !strings.Contains(rule.Expr, `up{job="plumbline"}`) {
				t.Errorf("%s: %s has no metric of Plumbline", rule.Alert, rule.Expr)
			}
			for _, metric := range metrics {
				if labels[metric] == nil {
					t.Errorf("%s: METRICS.md has no %s", rule.Alert, metric)
					continue
				}
				for _, match := range labelInRule.FindAllStringSubmatch(rule.Expr, -1) {
					for label := range strings.SplitSeq(match[1]+match[2], ", ") {
						if !slices.Contains(labels[metric], label) {
							t.Errorf("%s: %s has no label %s", rule.Alert, metric, label)
						}
					}
				}
			}
		}
	}
	if len(alerts) < 20 || !slices.Equal(alerts, sections) {
		t.Errorf("the alerts\n%v\nare not the sections of RUNBOOK.md, in this order:\n%v", alerts, sections)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
