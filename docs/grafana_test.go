package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// dashboard is the part of a Grafana dashboard that this test reads.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct {
			Name       string
			Datasource *source
			Query      json.RawMessage
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               source
	FieldConfig              struct {
		Defaults struct{ Unit, NoValue string }
	}
	Targets []struct {
		RefID        string `json:"refId"`
		Datasource   source
		RawSQL       string `json:"rawSql"`
		Expr         string
		LegendFormat string `json:"legendFormat"`
	}
}

type source struct{ Type, UID string }

// provisioned returns the types of the sources that compose provisions, by their uids.
func provisioned(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/provisioning/datasources/plumbline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Datasources []struct {
			UID  string `yaml:"uid"`
			Type string `yaml:"type"`
		} `yaml:"datasources"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, d := range file.Datasources {
		types[d.UID] = d.Type
	}
	return types
}

// The dashboards are whole: their ids differ, no panels overlap, each panel has a title, a description, a unit, a text for
// no data, and a source that is provisioned, and a query in the source's language.
func TestDashboardsAreWhole(t *testing.T) {
	types, uids := provisioned(t), map[string]bool{}
	paths, err := filepath.Glob("../deploy/grafana/dashboards/*.json")
	if err != nil || len(paths) != 3 {
		t.Fatalf("%d dashboards, want 3: %v", len(paths), err)
	}
	page, err := os.ReadFile("GRAFANA.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if !strings.Contains(string(page), "/"+name+")") {
			t.Errorf("GRAFANA.md does not have %s", name)
		}
		d := readDashboard(t, path)
		if d.UID == "" || d.Title == "" || uids[d.UID] {
			t.Errorf("%s: uid %q, title %q", name, d.UID, d.Title)
		}
		uids[d.UID] = true
		ids, taken := map[int]string{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] != "" || p.Title == "" || !strings.HasSuffix(p.Description, ".") || !slices.Contains([]string{"stat", "table", "timeseries"}, p.Type) {
				t.Errorf("%s: panel %d (%s, %s, %q): id taken by %q", name, p.ID, p.Title, p.Type, p.Description, ids[p.ID])
			}
			ids[p.ID] = p.Title
			// A number from ClickHouse is always there.
			if always := p.Type == "stat" && p.Datasource.UID == "plumbline-clickhouse"; p.FieldConfig.Defaults.Unit == "" || (p.FieldConfig.Defaults.NoValue == "") != always {
				t.Errorf("%s: %s has the unit %q, and without data %q", name, p.Title, p.FieldConfig.Defaults.Unit, p.FieldConfig.Defaults.NoValue)
			}
			checkPlace(t, name, p, taken)
			checkSource(t, name, p, types)
		}
		for _, v := range d.Templating.List {
			if v.Datasource != nil && types[v.Datasource.UID] != v.Datasource.Type {
				t.Errorf("%s: variable %s has the source %v", name, v.Name, *v.Datasource)
			}
		}
	}
}

func readDashboard(t *testing.T, path string) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return d
}

// checkPlace checks that a panel lies within the 24 columns, on cells that no other panel has taken.
func checkPlace(t *testing.T, name string, p panel, taken map[[2]int]string) {
	t.Helper()
	at := p.GridPos
	if at.X < 0 || at.Y < 0 || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
		t.Errorf("%s: %s lies at %+v", name, p.Title, at)
	}
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			if other := taken[[2]int{x, y}]; other != "" {
				t.Fatalf("%s: %s lies over %s", name, p.Title, other)
			}
			taken[[2]int{x, y}] = p.Title
		}
	}
}

// quotedVariable matches a variable where nobody's text can end the string in which it stands, and what Grafana itself fills in.
var quotedVariable = regexp.MustCompile(`decodeURLComponent\('\$\{agent:percentencode\}'\)|=~"\$instance"|\[\$__(rate_interval|range)\]|\$__(timeFilter|dateFilter|timeInterval)\(\w+\)`)

func checkSource(t *testing.T, name string, p panel, types map[string]string) {
	t.Helper()
	if types[p.Datasource.UID] != p.Datasource.Type || p.Datasource.Type == "" || len(p.Targets) == 0 {
		t.Errorf("%s: %s has the source %v and %d queries", name, p.Title, p.Datasource, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		sql := p.Datasource.Type == "grafana-clickhouse-datasource"
		if rest := quotedVariable.ReplaceAllString(q.RawSQL+q.Expr, ""); strings.Contains(rest, "$") {
			t.Errorf("%s: %s: a variable stands without quotes in %s", name, p.Title, rest)
		}
		if q.Datasource != p.Datasource || refs[q.RefID] || (q.RawSQL != "") != sql || (q.Expr != "") == sql {
			t.Errorf("%s: %s: query %s has the source %v", name, p.Title, q.RefID, q.Datasource)
		}
		refs[q.RefID] = true
	}
}

var (
	metricInQuery  = regexp.MustCompile(`\b(plumbline_[a-z0-9_]+|process_[a-z0-9_]+|up\b)`)
	labelsInQuery  = regexp.MustCompile(`by \(([a-z_, ]+)\)|\{\{([a-z_]+)\}\}`)
	documentedRow  = regexp.MustCompile("(?m)^\\| `(plumbline_[a-z0-9_]+)` \\| (\\w+) \\| ([^|]*) \\|")
	ofScraping     = []string{"instance", "job"}
	ofTheProcesses = []string{"process_resident_memory_bytes", "process_cpu_seconds_total", "up"}
)

// Every metric of a query is in METRICS.md, has the labels by which the query sums, and is a counter where the query asks for its rate.
func TestDashboardsQueryMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds, labels := map[string]string{}, map[string][]string{}
	for _, row := range documentedRow.FindAllStringSubmatch(string(text), -1) {
		kinds[row[1]], labels[row[1]] = row[2], strings.Split(row[3], ", ")
	}
	queries := 0
	for _, p := range readDashboard(t, "../deploy/grafana/dashboards/operators.json").Panels {
		for _, q := range p.Targets {
			queries++
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || strings.Count(q.Expr, "{") != strings.Count(q.Expr, "}") {
				t.Errorf("%s: brackets of %s", p.Title, q.Expr)
			}
			metrics := metricInQuery.FindAllString(q.Expr, -1)
			if len(metrics) == 0 {
				t.Errorf("%s: no metric in %s", p.Title, q.Expr)
			}
			for _, metric := range metrics {
				name := strings.TrimSuffix(metric, "_bucket")
				if slices.Contains(ofTheProcesses, name) {
					continue
				}
				rated := strings.Contains(q.Expr, "rate("+metric) || strings.Contains(q.Expr, "increase("+metric)
				want := map[bool]string{false: "gauge", true: "counter"}[rated]
				if name != metric {
					want = "histogram"
				}
				if kinds[name] != want {
					t.Errorf("%s: %s is a %q in METRICS.md, the query needs a %s", p.Title, name, kinds[name], want)
				}
				for _, m := range labelsInQuery.FindAllStringSubmatch(q.Expr+" "+q.LegendFormat, -1) {
					for label := range strings.SplitSeq(m[1]+m[2], ", ") {
						if !slices.Contains(slices.Concat(labels[name], ofScraping, []string{"le"}), label) {
							t.Errorf("%s: %s has no label %s", p.Title, name, label)
						}
					}
				}
			}
		}
	}
	if queries < 30 {
		t.Errorf("%d queries found", queries)
	}
}
