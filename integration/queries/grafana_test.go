package queries_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// dashboard is the part of a Grafana dashboard that has queries.
type dashboard struct {
	Title  string
	Panels []struct {
		Title      string
		Type       string
		Datasource struct{ UID string }
		Targets    []struct {
			RawSQL string `json:"rawSql"`
			Format int    // 0: time series, 1: table
		}
	}
}

// readDashboards returns the dashboards of deploy/grafana.
func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	paths, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, d)
	}
	return all
}

var macro = regexp.MustCompile(`\$__(timeFilter|dateFilter|timeInterval)\((\w+)\)|\$\{agent:percentencode\}`)

// expand replaces what Grafana and its plugin for ClickHouse replace (docs/GRAFANA.md has the list). A $ that is left
// is a fault: Grafana might replace it, and this test would not know by what.
func expand(t *testing.T, query string, from, to time.Time, agent string) string {
	t.Helper()
	expanded := macro.ReplaceAllStringFunc(query, func(found string) string {
		m := macro.FindStringSubmatch(found)
		switch column := m[2]; m[1] {
		case "timeFilter":
			return fmt.Sprintf("%s >= toDateTime(%d) AND %[1]s <= toDateTime(%[3]d)", column, from.Unix(), to.Unix())
		case "dateFilter":
			return fmt.Sprintf("%s >= toDate('%s') AND %[1]s <= toDate('%[3]s')", column, from.Format(time.DateOnly), to.Format(time.DateOnly))
		case "timeInterval":
			return fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL 60 second)", column)
		}
		return strings.ReplaceAll(url.QueryEscape(agent), "+", "%20")
	})
	if strings.Contains(expanded, "$") {
		t.Errorf("this test cannot expand %s", query)
	}
	return expanded
}

// bounded matches what limits a query to the range of the dashboard. The view agents_now is about now, whatever the range.
var bounded = regexp.MustCompile(`\$__timeFilter\(|\$__dateFilter\(|FROM agents_now\b`)

// Every query of the dashboards runs on a fleet that has every fault of docs/QUERIES.md, with the
// columns that its panel needs. Panels have rows, the same for one agent, and none for an agent that does not exist.
func TestDashboardsOnSmallFleet(t *testing.T) {
	f := newSmall()
	s := newSite(t, f.cards, []string{"ac-desk-1"}, f.records, len(newTruth(t, f.cards, f.records, f.violations).traces), f.sealed)
	from, to := time.Now().UTC().AddDate(0, 0, -40), time.Now().UTC().AddDate(0, 0, 1)
	// What the small fleet does not have: nothing damages its rows or its ledgers, and drift is not what it is about.
	mayBeEmpty := map[string]bool{"Attempts to seal that made no bundle": true}
	queries := 0
	for _, d := range readDashboards(t) {
		for _, p := range d.Panels {
			if p.Datasource.UID != "plumbline-clickhouse" {
				continue
			}
			what := d.Title + ": " + p.Title
			for _, target := range p.Targets {
				queries++
				if !bounded.MatchString(target.RawSQL) {
					t.Errorf("%s: the query is not bounded by time", what)
				}
				if p.Type == "table" && !strings.Contains(target.RawSQL, "LIMIT ") {
					t.Errorf("%s: the table has no limit", what)
				}
				rows, _ := s.ask(t, expand(t, target.RawSQL, from, to, ""), nil)
				if len(rows) == 0 && !mayBeEmpty[p.Title] {
					t.Errorf("%s: no rows", what)
				}
				if target.Format == 0 && len(rows) > 0 && rows[0]["time"] == "" {
					t.Errorf("%s: a time series without a column time: %v", what, rows[0])
				}
				if p.Type == "stat" && (len(rows) != 1 || len(rows[0]) != 1) {
					t.Errorf("%s: %v, want one number", what, rows)
				}
				for _, r := range rows {
					if id, has := r["agent_id"]; has && id == "" {
						t.Errorf("%s: a row without an agent: %v", what, r)
					}
				}
				s.checkAgent(t, what, p.Type, target.RawSQL, from, to)
			}
		}
	}
	if queries < 25 {
		t.Errorf("%d queries found", queries)
	}
	s.checkFigures(t, from, to, f)
}

// checkAgent compares the answer for one agent, and for names that would end the text in which they stand: in ClickHouse
// a backslash escapes a quote.
func (s *site) checkAgent(t *testing.T, what, kind, query string, from, to time.Time) {
	t.Helper()
	if !strings.Contains(query, "${agent:") {
		return
	}
	rows, _ := s.ask(t, expand(t, query, from, to, "shop"), nil)
	for _, r := range rows {
		if id, has := r["agent_id"]; has && id != "shop" {
			t.Errorf("%s: for agent shop it has a row of %s", what, id)
		}
	}
	for _, nobody := range []string{"nobody' OR 1 = 1 --", `nobody\' OR 1 = 1 --`, `nobody\`} {
		rows, _ = s.ask(t, expand(t, query, from, to, nobody), nil)
		if kind != "stat" && len(rows) > 0 {
			t.Errorf("%s: for the agent %s, who does not exist: %v", what, nobody, rows)
		}
		if kind == "stat" {
			for _, value := range rows[0] {
				if value != "0" {
					t.Errorf("%s: %s for the agent %s, who does not exist", what, value, nobody)
				}
			}
		}
	}
}

// checkFigures compares figures of the dashboards with the fleet that was published.
func (s *site) checkFigures(t *testing.T, from, to time.Time, f *small) {
	t.Helper()
	all := newTruth(t, f.cards, f.records, f.violations)
	agents := all.counted(func(trace *schema.Trace) []string { return []string{trace.AgentID} })
	want := map[string]string{
		"Traces": fmt.Sprint(len(all.traces)), "Agents": fmt.Sprint(len(agents)), "Bundles sealed": fmt.Sprint(len(f.sealed)),
		"Sessions not sealed": fmt.Sprint(len(all.sessions()) - len(f.sealed)), "Sessions held": "0",
	}
	for _, d := range readDashboards(t) {
		for _, p := range d.Panels {
			if want[p.Title] == "" {
				continue
			}
			rows, _ := s.ask(t, expand(t, p.Targets[0].RawSQL, from, to, ""), nil)
			for _, got := range rows[0] {
				if got != want[p.Title] {
					t.Errorf("%s: %s, want %s", p.Title, got, want[p.Title])
				}
			}
			delete(want, p.Title)
		}
	}
	if len(want) > 0 {
		t.Errorf("no panels: %v", want)
	}
}
