package web

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The list is empty without problems; filters select by agent, type, severity and time, and are in the address.
func TestProblems(t *testing.T) {
	r := start(t, nil)
	v := r.visitor("")
	v.page("/problems", "No problem was found in this time")
	r.put(r.rows,
		fact{agent: "a", trace: "t-1", session: "s-1", violations: []string{"FORBIDDEN_ACTION"}, text: "first fault"},
		fact{agent: "b", trace: "t-2", session: "s-2", findings: []string{"BACKDATED"}, text: "second fault"},
		fact{agent: "b", trace: "t-3", session: "s-2", ago: 48 * time.Hour, findings: []string{"BACKDATED"}, text: "fault of the past"},
		fact{agent: "b", trace: "t-4", session: "s-2", text: "no fault"},
		fact{agent: "b", trace: "t-5", session: "s-2", at: time.Now().Add(48 * time.Hour), findings: []string{"TIME_IMPLAUSIBLE"}, text: "fault of the future"})
	for query, sees := range map[string]string{"": "first second ahead", "?agent=a": "first", "?agent=b": "second ahead", "?type=BACKDATED": "second", "?severity=CRITICAL": "first second ahead",
		"?span=7d": "first second past ahead", "?span=7d&type=BACKDATED&agent=b": "second past", "?agent=none": "", "?from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z": ""} {
		text := v.page("/problems" + query)
		for word, fault := range map[string]string{"first": "first fault", "second": "second fault", "past": "fault of the past", "ahead": "fault of the future", "never": "no fault"} {
			if strings.Contains(text, fault) != strings.Contains(sees, word) {
				t.Errorf("/problems%s: %q is wrong:\n%s", query, fault, text)
			}
		}
	}
	v.page("/problems?agent=a", html.EscapeString(sessionAddress("a", "s-1", "t-1")), "Without filters", `value="a"`)
	for _, query := range []string{"?severity=none", "?span=99y", "?from=now", "?from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z", "?after=x", "?after=1.x", "?agent=" + strings.Repeat("x", 5000)} {
		if code, _ := v.get("/problems" + query); code != http.StatusNotFound {
			t.Errorf("/problems%.40s: %d", query, code)
		}
	}
}

// Pages join without a gap and without a repetition.
func TestPagesOfProblems(t *testing.T) {
	r := start(t, nil)
	var facts []fact
	for i := range 130 {
		facts = append(facts, fact{agent: "a", trace: fmt.Sprint("t-", i), session: "s", ago: time.Duration(i/2) * time.Second, violations: []string{"FORBIDDEN_ACTION", "CARD_EXPIRED"}, text: fmt.Sprintf("fault %d.", i)})
	}
	r.put(r.rows, facts...)
	v := r.visitor("")
	all := ""
	for path := "/problems"; path != ""; {
		text := v.page(path)
		all += text
		more := strings.Contains(text, `rel="next"`)
		path = ""
		if more {
			before := text[:strings.Index(text, `" rel="next"`)]
			path = html.UnescapeString(before[strings.LastIndex(before, `"`)+1:])
		}
	}
	for i := range facts {
		if n := strings.Count(all, fmt.Sprintf(`"><bdi>fault %d.<`, i)); n != 2 {
			t.Errorf("fault %d is listed %d times", i, n)
		}
	}
}

// A token sees the problems of its agents and tenant only.
func TestProblemsOfAToken(t *testing.T) {
	r := start(t, nil, "shop-token shop.* traces:read")
	r.put(r.rows, fact{agent: "shop.a", trace: "t", session: "s", violations: []string{"CARD_EXPIRED"}, text: "own fault"}, fact{agent: "other", trace: "t", session: "s", violations: []string{"CARD_EXPIRED"}, text: "foreign fault"})
	r.put(r.tenant("neighbour"), fact{agent: "shop.foreign", trace: "t", session: "s", violations: []string{"CARD_EXPIRED"}, text: "foreign fault"})
	v := r.visitor("shop-token")
	if text := v.page("/problems", "own fault"); strings.Contains(text, "foreign") {
		t.Errorf("problems of others:\n%s", text)
	}
	if code, text := v.get("/problems?agent=other"); code != http.StatusNotFound || strings.Contains(text, "foreign") {
		t.Errorf("%d %s", code, text)
	}
}
