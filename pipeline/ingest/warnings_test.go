package ingest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// codes returns the codes of a line's warnings.
func (l line) codes() (codes []string) {
	for _, w := range l.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// What may be unintended is reported together with "accepted": about the card that a trace names,
// and about members that nobody reads.
func TestWarnings(t *testing.T) {
	r := start(t)
	expiring := strings.Replace(card("a", "expired"), `"principal"`, `"expires_at":"2026-01-15T00:00:00Z","principal"`, 1)
	late := strings.Replace(card("a", "late"), "2026-01-01", "2026-02-01", 1)
	for id, text := range map[string]string{"card-1": card("a", "card-1"), "expired": expiring, "late": late, "b's": card("b", "b's")} {
		if answer := r.putCard(id, text); answer.code != http.StatusCreated {
			t.Fatal(answer.text)
		}
	}
	with := func(id, cardID string, members ...string) string {
		return strings.Replace(trace("a", id, members...), `"card-1"`, fmt.Sprintf("%q", cardID), 1)
	}
	lines := []string{
		with("1", "card-1"), with("2", "nobody's"), with("3", "expired"), with("4", "late"), with("5", "b's"),
		with("6", "card-1", `"escalations":{}`), with("7", "card-1", `"context":{"metadata":{"sequence_number":"3"}}`),
		with("8", "nobody's", `"zzz":1`), strings.Replace(with("9", "card-1"), "bounded", "bound", 1),
	}
	want := [][]string{nil, {schema.WarnUnknownCard}, {schema.WarnExpiredCard}, {schema.WarnCardNotIssued}, {schema.WarnForeignCard},
		{schema.WarnIgnoredMember}, {schema.WarnIgnoredMember}, {schema.WarnIgnoredMember, schema.WarnUnknownCard}, nil}
	check := func(status string) {
		t.Helper()
		answer := r.post(body(lines...))
		got := answer.lines(t)
		if answer.code != http.StatusMultiStatus || len(got) != len(want) {
			t.Fatalf("%d %s", answer.code, answer.text)
		}
		for i, l := range got[:8] {
			if l.Status != status || !slices.Equal(l.codes(), want[i]) {
				t.Errorf("line %d: %+v, want %s with %v", i+1, l, status, want[i])
			}
		}
		if strings.Contains(strings.SplitN(answer.text, "\n", 2)[0], "warnings") || got[8].Status != "refused" || got[8].Warnings != nil {
			t.Errorf("warnings for a line without any, or for a refused line: %s", answer.text)
		}
		if w := got[6].Warnings[0]; w.Pointer != "/context/metadata/sequence_number" || !strings.Contains(w.Message, "whole number") {
			t.Errorf("it says %+v", w)
		}
	}
	check("accepted")
	check("duplicate")
	if answer := r.revoke("card-1", `{"reason":"x"}`); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	later := strings.Replace(trace("a", "10"), "2026-01-31", "2099-01-31", 1)
	if got := r.post(body(later)).lines(t)[0]; !slices.Equal(got.codes(), []string{schema.WarnRevokedCard}) {
		t.Errorf("after the revocation: %+v", got)
	}
}

// Another record under a trace_id is a conflict, which this process knows if it stored the other
// one. An identical record is not a conflict, and neither is one of another agent.
func TestConflictsGetAWarning(t *testing.T) {
	r := start(t)
	for _, agent := range []string{"a", "b"} {
		if answer := r.putCard("card-"+agent, card(agent, "card-"+agent)); answer.code != http.StatusCreated {
			t.Fatal(answer.text)
		}
	}
	of := func(agent, id string, members ...string) string {
		return strings.Replace(trace(agent, id, members...), `"card-1"`, `"card-`+agent+`"`, 1)
	}
	one, other := of("a", "1"), of("a", "1", `"context":{"session_id":"s"}`)
	for i, step := range []struct {
		lines []string
		want  []bool
	}{
		{[]string{one, one, of("b", "1")}, []bool{false, false, false}},
		{[]string{other}, []bool{true}},
		{[]string{one}, []bool{true}}, // a duplicate, and the other one is stored
		{[]string{of("a", "2"), of("a", "2", `"context":{}`)}, []bool{false, true}},
	} {
		for n, l := range r.post(body(step.lines...)).lines(t) {
			if got := slices.Equal(l.codes(), []string{schema.WarnConflict}); got != step.want[n] || !got && l.Warnings != nil {
				t.Errorf("step %d, line %d: %+v", i, n, l)
			}
		}
	}
	another := onBrokerOf(t, r) // does not know what this one stored
	if l := another.post(body(of("a", "1", `"context":{"session_id":"t"}`))).lines(t)[0]; l.Status != "accepted" || l.Warnings != nil {
		t.Errorf("another process: %+v", l)
	}
}

// A line without warnings costs no additional allocation. The size of the answer is limited,
// whatever the warnings.
func TestWarningsAreBounded(t *testing.T) {
	s := offline(t)
	u := upload{server: s, buffers: s.pool.take(), grant: openGrant(t, s)}
	raw := []byte(usual(1))
	if allocated := testing.AllocsPerRun(100, func() {
		if err := u.admit(raw); err != nil || len(u.results) != 1 || u.results[0].warnings != nil {
			t.Fatal(err, u.results)
		}
		u.clear()
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
	odd := strings.TrimSuffix(usual(1), "}\n")
	for i := range 20 {
		odd += fmt.Sprintf(`,"%s%d":1`, strings.Repeat("x", 400), i)
	}
	answer := s.handle(t, strings.NewReader(strings.Repeat(odd+"}\n", 2000)))
	lines := answer.lines(t)
	if len(answer.text) > 2*maxFaultBytes || len(lines) != 2000 || !slices.Equal(lines[1999].codes(), []string{schema.WarnLeftOff}) {
		t.Errorf("%d bytes in %d lines, the last %+v", len(answer.text), len(lines), lines[len(lines)-1])
	}
}
