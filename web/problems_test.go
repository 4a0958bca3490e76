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
}

// An address with a parameter that has no meaning is answered with the parameter, its value and what it takes.
func TestWrongParameters(t *testing.T) {
	long := strings.Repeat("x", 5000)
	v := start(t, nil).visitor("")
	for path, says := range map[string]string{
		"/problems?from=yesterday":                                    `The parameter from is "yesterday". It takes a time of RFC 3339 from 1970 to 2105, such as 2026-01-31T18:00:00Z.`,
		"/problems?to=1969-01-01T00:00:00Z":                           `The parameter to is "1969-01-01T00:00:00Z". It takes a time of RFC 3339`,
		"/problems?from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z": `The parameter to is "2025-01-01T00:00:00Z". It takes a time after that of from, which is 2026-01-01T00:00:00Z.`,
		"/problems?severity=none":                                     `The parameter severity is "none". It takes one of LOW, MEDIUM, HIGH, CRITICAL.`,
		"/problems?span=99y":                                          `The parameter span is "99y". It takes one of 1h, 24h, 7d, 30d.`,
		"/problems?after=x":                                           `The parameter after is "x". It takes a place in the list`,
		"/problems?after=1.x":                                         `The parameter after is "1.x".`,
		"/problems?agent=" + long:                                     "It takes an id of 512 bytes at most.",
		"/problems?type=" + long:                                      "It takes a type of problem",
		"/agent?id=a&for=99y":                                         `The parameter for is "99y". It takes one of 1h, 6h, 24h, 7d, 30d, 1y.`,
		"/tail?verdict=bad":                                           `The parameter verdict is "bad". It takes one of problems, review, deny.`,
		"/tail/events?agent=" + long:                                  "It takes an id of 512 bytes at most.",
		"/deadletters?after=0":                                        `The parameter after is "0".`,
		"/deadletters?agent=" + long:                                  "It takes an id of 512 bytes at most.",
		"/deadletters?reason=" + long:                                 "It takes a reason as the list has it",
		"/session?agent=a&id=s&trace=" + long:                         "It takes an id of 512 bytes at most.",
		"/problems?from=%E2%80%AE%3Cb%3E":                             `The parameter from is "\u202e<b>".`, // a text that reverses what follows it
	} {
		code, text := v.get(path)
		_, said, _ := strings.Cut(text, `<section class="empty">`)
		said = html.UnescapeString(strings.ReplaceAll(said, "</p><p>", " "))
		if code != http.StatusBadRequest || !strings.Contains(said, says) {
			t.Errorf("%.60s: %d, want it to say %q:\n%.2000s", path, code, says, said)
		}
	}
	if code, text := v.get("/agent?id=nobody"); code != http.StatusNotFound || strings.Contains(text, "token") {
		t.Errorf("where no token is needed, the page of an agent that does not exist: %d %s", code, text)
	}
	if text := v.page("/search?q=nobody", "Nothing has this name"); strings.Contains(text, "your token") {
		t.Errorf("where no token is needed, a search that finds nothing says:\n%s", text)
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
