package reading

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Pages contain every trace once, the newest first, also if rows arrive between two pages. Filters
// select, the bytes are the stored ones, and the verdict is the current one.
func TestPages(t *testing.T) {
	r := start(t, nil)
	for i := range 7 { // 3 and 4 have one time
		seconds := float64(i)
		if i == 4 {
			seconds = 3
		}
		r.store(r.rows, trace(t, "did:web:a", fmt.Sprint("t-", i), fmt.Sprint("s-", i%2), seconds, "first"))
	}
	r.store(r.rows, trace(t, "did:web:a", "t-6", "s-0", 6, "first")) // a copy
	first := r.traces("/v1/traces?limit=3")
	if got := first.ids(t); !slices.Equal(got, []string{"t-6", "t-5", "t-3"}) || first.NextCursor == "" {
		t.Fatalf("the first page has %q, cursor %q", got, first.NextCursor)
	}
	r.store(r.rows, trace(t, "did:web:a", "newer", "s-0", 9, "x"))  // before the cursor
	r.store(r.rows, trace(t, "did:web:a", "older", "s-0", -9, "x")) // after the cursor
	r.store(r.rows, trace(t, "did:web:a", "t-5", "s-1", 5, "first"))
	second := r.traces("/v1/traces?limit=3&cursor=" + first.NextCursor)
	third := r.traces("/v1/traces?limit=3&cursor=" + second.NextCursor)
	if got := append(second.ids(t), third.ids(t)...); !slices.Equal(got, []string{"t-4", "t-2", "t-1", "t-0", "older"}) || third.NextCursor != "" {
		t.Errorf("the next pages have %q, cursor %q", got, third.NextCursor)
	}

	r.store(r.rows, trace(t, "did:web:a", "bad-1", "s-9", 20, "x"), schema.UnboundedAction)
	r.store(r.rows, trace(t, "did:web:b", "bad-2", "s-9", 21, "x"), schema.UndeclaredValue, schema.MissedEscalation)
	judgedLater := trace(t, "did:web:b", "late", "s-9", 22, "x")
	unknown := &schema.Verdict{Status: schema.StatusCardUnknown, RecommendedAction: schema.Review, AgentID: "did:web:b", TraceID: "late", CardID: "ac-1", Timestamp: at.Add(time.Hour),
		Violations: []schema.Remark{{Type: schema.CardExpired, Severity: schema.SeverityHigh, Description: "superseded"}}, Warnings: []schema.Remark{}, Findings: []schema.Remark{},
		Metadata: schema.Metadata{EngineVersion: "1", Profile: "spec", TraceDigest: judgedLater.Digest}}
	r.storeFor(r.rows, judgedLater, unknown, 90*24*time.Hour)
	r.store(r.rows, judgedLater)
	for query, want := range map[string][]string{
		"session_id=s-9":                                                 {"late", "bad-2", "bad-1"},
		"violation=any":                                                  {"bad-2", "bad-1"},
		"violation=any&agent_id=did:web:a":                               {"bad-1"},
		"violation=MISSED_ESCALATION":                                    {"bad-2"},
		"violation=CARD_EXPIRED":                                         nil, // only a superseded verdict has it
		"agent_id=did:web:b":                                             {"late", "bad-2"},
		"agent_id=did:web:b&session_id=s-0":                              nil,
		"from=2026-11-20T12:00:05Z&to=2026-11-20T12:00:09Z":              {"t-6", "t-5"},
		"from=2026-11-20T13:00:05%2B01:00&to=2026-11-20T12:00:05.5Z":     {"t-5"},
		"from=2026-11-20T12:00:21Z&limit=1&session_id=s-9&violation=any": {"bad-2"},
	} {
		if page := r.traces("/v1/traces?" + query); !slices.Equal(page.ids(t), want) {
			t.Errorf("%s: %q, want %q", query, page.ids(t), want)
		}
	}
	bad := r.traces("/v1/traces?violation=MISSED_ESCALATION").Traces[0]
	if v := bad.Verdict; v == nil || v.RecommendedAction != schema.Deny || len(v.Violations) != 2 || v.TraceID != "bad-2" || bad.AgentID != "did:web:b" {
		t.Errorf("the verdict is %+v", v)
	}

	r.store(r.rows, trace(t, "did:web:a", "t-6", "s-0", 6.5, "other contents"))
	r.store(r.rows, trace(t, "did:web:b", "t-6", "s-0", 7, "another agent's"))
	if page := r.traces("/v1/traces/t-6"); len(page.ids(t)) != 3 {
		t.Errorf("trace t-6: %q, want all three records", page.ids(t))
	}
	if page := r.traces("/v1/traces/t-6?agent_id=did:web:a"); len(page.ids(t)) != 2 {
		t.Errorf("trace t-6 of one agent: %q, want both records", page.ids(t))
	}
	r.refused("/v1/traces/none", http.StatusNotFound, "unknown_trace")
}

// A page of large traces ends early, and the next one continues.
func TestPagesAreBoundedInBytes(t *testing.T) {
	r := start(t, nil)
	var want, got []string
	for i := range 13 {
		r.store(r.rows, trace(t, "did:web:a", fmt.Sprint("t-", i), "s", -float64(i), strings.Repeat("x", 700<<10)))
		want = append(want, fmt.Sprint("t-", i))
	}
	for i := range 13 { // thirteen contents under one id
		r.store(r.rows, trace(t, "did:web:b", "same", "s", -float64(i), strings.Repeat("x", 700<<10)))
	}
	first := r.traces("/v1/traces/same?agent_id=did:web:b")
	second := r.traces("/v1/traces/same?agent_id=did:web:b&cursor=" + first.NextCursor)
	if n := len(first.ids(t)) + len(second.ids(t)); n != 13 || first.NextCursor == "" || second.NextCursor != "" {
		t.Errorf("%d records of trace same, cursors %q and %q", n, first.NextCursor, second.NextCursor)
	}
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		path := "/v1/traces?agent_id=did:web:a&limit=1000"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		page := r.traces(path)
		size := 0
		for i := range page.Traces {
			size += len(page.Traces[i].Trace)
		}
		if size > maxPageBytes {
			t.Errorf("page %d has %d bytes", pages, size)
		}
		got, cursor = append(got, page.ids(t)...), page.NextCursor
	}
	if !slices.Equal(got, want) || pages != 2 {
		t.Errorf("%d pages have %q, want %q", pages, got, want)
	}
}

// Whatever a request says, its answer has nothing of another agent and nothing of another tenant.
func TestATokenReadsItsAgentsOnly(t *testing.T) {
	r := start(t, nil, "own did:web:own traces:read,bundles:read", "team did:web:team-*,did:web:own traces:read,bundles:read",
		"all * traces:read,bundles:read", "writer * traces:write,cards:read")
	const secret = "SECRET"
	r.store(r.rows, trace(t, "did:web:own", "mine", "s", 0, "mine"))
	r.store(r.rows, trace(t, "did:web:team-1", "ours", "s", 1, "ours"))
	for i, agent := range []string{"did:web:owner", "did:web:team", "did:web:ow", "DID:WEB:OWN", "did:web:own*", "did:web:other"} {
		r.store(r.rows, trace(t, agent, "mine", "s", float64(2+i), secret), schema.UnboundedAction)
	}
	tenant := r.tenant("other")
	for _, agent := range []string{"did:web:own", "did:web:team-1"} {
		r.store(tenant, trace(t, agent, "mine", "s", 30, secret), schema.UnboundedAction)
		r.bundle(tenant, agent, secret, 1)
	}
	foreign := r.bundle(r.rows, "did:web:other", secret, 1)
	all := "Authorization: Bearer all"
	if page := r.traces("/v1/traces", all); len(page.Traces) != 8 {
		t.Fatalf("all agents of the tenant have %d traces", len(page.Traces))
	}
	cursors := []string{r.traces("/v1/traces?limit=2", all).NextCursor}
	for _, place := range []string{
		`{"t":9999999999999999999,"a":"","i":"","d":"` + strings.Repeat("f", 64) + `"}`,
		`{"t":4000000000000000000,"a":"did:web:other","i":"' OR 1=1 --","d":"` + strings.Repeat("0", 64) + `"}`,
		`{"t":-1,"a":"","i":"","d":"` + strings.Repeat("0", 64) + `"}`,
	} {
		cursors = append(cursors, base64.RawURLEncoding.EncodeToString([]byte(place)))
	}
	hostile := []string{"did:web:other", "did:web:own' OR '1'='1", `did:web:own\' OR 1=1 -- `, "*", "did:web:*", "%", "{agents:Array(String)}", "did:web:own\x00", secret}
	var paths []string
	for _, h := range hostile {
		q := url.QueryEscape(h)
		paths = append(paths, "/v1/traces?agent_id="+q, "/v1/traces?session_id="+q, "/v1/traces?session_id=s&violation=any&agent_id="+q, "/v1/traces/mine?agent_id="+q,
			"/v1/traces/"+url.PathEscape(h), "/v1/bundles?agent_id="+q, "/v1/bundles?session_id="+q, "/v1/bundles/"+url.PathEscape(h),
			"/v1/traces?violation="+q, "/v1/traces?limit="+q, "/v1/traces?from="+q, "/v1/traces?tenant="+q, "/v1/traces?agent_id=did:web:own&agent_id="+q, "/v1/traces?cursor="+q)
	}
	for _, cursor := range cursors {
		paths = append(paths, "/v1/traces?cursor="+cursor, "/v1/traces?violation=any&cursor="+cursor, "/v1/bundles?cursor="+cursor)
	}
	paths = append(paths, "/v1/traces", "/v1/traces?violation=any", "/v1/traces/mine", "/v1/bundles", "/v1/bundles/"+foreign.String(), "/v1/traces?session_id=s&limit=1000")
	for _, token := range []string{"own", "team"} {
		for _, path := range paths {
			code, text := r.get(path, "Authorization: Bearer "+token)
			// The request may repeat its own words; nothing else may.
			if strings.Contains(strings.ReplaceAll(text, `\"`+secret+`\"`, ""), secret) || code >= 500 {
				t.Errorf("%s with token %s: %d %s", path, token, code, text)
			}
		}
		for _, path := range paths {
			if code, _ := r.get(path, "Authorization: Bearer writer"); code != http.StatusForbidden {
				t.Errorf("%s without the scope: %d", path, code)
			}
		}
		r.refused("/v1/traces?agent_id=did:web:other", http.StatusForbidden, "forbidden", "Authorization: Bearer "+token)
		r.refused("/v1/bundles/"+foreign.String(), http.StatusNotFound, "unknown_bundle", "Authorization: Bearer "+token)
	}
	for token, want := range map[string][]string{"own": {"mine"}, "team": {"ours", "mine"}} {
		if page := r.traces("/v1/traces", "Authorization: Bearer "+token); !slices.Equal(page.ids(t), want) {
			t.Errorf("token %s reads %q, want %q", token, page.ids(t), want)
		}
		if page := r.traces("/v1/traces/mine", "Authorization: Bearer "+token); len(page.Traces) != 1 || page.Traces[0].AgentID != "did:web:own" {
			t.Errorf("token %s reads trace mine as %+v", token, page.Traces)
		}
	}
}

// Two tenants of one database have the same trace to the byte, and the same session. Each reads its own
// verdicts and states, and the rows of the other take no place on its pages.
func TestTenantsReadTheirOwnRows(t *testing.T) {
	r := start(t, nil)
	other := r.tenant("other")
	same := trace(t, "a", "t", "s", 0, "x")
	r.store(r.rows, same)
	later := verdictOn(same, schema.ForbiddenAction)
	later.Timestamp = later.Timestamp.Add(time.Hour)
	r.storeFor(other, same, later, 90*24*time.Hour)
	r.store(other, trace(t, "a", "newer", "s", 10, "x"))
	page := r.traces("/v1/traces?limit=1")
	if got := page.ids(t); !slices.Equal(got, []string{"t"}) || page.NextCursor != "" || len(page.Traces[0].Verdict.Violations) > 0 || page.Traces[0].StreamSequence != 1 {
		t.Errorf("the page has %q with %+v", got, page.Traces)
	}
	if page := r.traces("/v1/traces?violation=any"); len(page.Traces) > 0 {
		t.Errorf("the other tenant's violation selects %+v", page.Traces)
	}
	digest := r.bundle(r.rows, "a", "s", 1)
	r.bundle(other, "a", "s", 2)
	verdict := &schema.SessionVerdict{AgentID: "a", SessionID: "s", Part: 1, Timestamp: at, RecommendedAction: schema.Deny, Findings: []schema.SessionFinding{},
		Metadata: schema.SessionMetadata{EngineVersion: "1", Profile: "spec"}}
	if err := other.InsertSessionVerdicts(t.Context(), []*schema.SessionVerdict{verdict}); err != nil {
		t.Fatal(err)
	}
	held := store.Session{AgentID: "a", SessionID: "s", Version: 1, Status: store.SessionHeld, FirstEvent: at, LastEvent: at, UpdatedAt: at}
	if err := other.InsertSessions(t.Context(), []store.Session{held}); err != nil {
		t.Fatal(err)
	}
	bundles := r.bundles("/v1/bundles?limit=1")
	if len(bundles.Bundles) != 1 || bundles.NextCursor != "" || bundles.Bundles[0].SHA256 != digest || bundles.Bundles[0].Verdict != nil || bundles.Bundles[0].SessionStatus != "" {
		t.Errorf("the bundles are %+v", bundles)
	}
}

// Wrong parameters are refused with a pointer to each.
func TestParametersAreChecked(t *testing.T) {
	r := start(t, nil)
	for query, pointer := range map[string]string{
		"agent=a": "?agent", "limit=0": "?limit", "limit=1001": "?limit", "limit=x": "?limit", "from=yesterday": "?from", "to=2026-11-20": "?to",
		"from=2026-11-21T00:00:00Z&to=2026-11-20T00:00:00Z": "?to", "from=2200-01-01T00:00:00Z": "?from", "violation=NONE": "?violation", "cursor=x": "?cursor", "cursor=e30x": "?cursor",
		"agent_id=": "?agent_id", "session_id=" + strings.Repeat("x", schema.MaxIDBytes+1): "?session_id", "limit=1&limit=2": "?limit", "limit=%zz": "?",
	} {
		if p := r.refused("/v1/traces?"+query, http.StatusBadRequest, "invalid_request"); len(p.Faults) == 0 || p.Faults[0].Pointer != pointer {
			t.Errorf("%s: faults %+v, want one at %s", query, p.Faults, pointer)
		}
	}
	r.refused("/v1/traces", http.StatusForbidden, "forbidden", "Host: evil.example")
}

// Bytes that were changed in the database are marked, and are no excuse for a broken answer.
func TestAlteredRowsAreMarked(t *testing.T) {
	good := trace(t, "a", "t", "s", 0, "x")
	for _, c := range []struct{ raw, want string }{
		{strings.Replace(string(good.Raw), "honesty", "thrift", 1), `"altered":true`},
		{"{\xff", `{"trace_base64":"e/8=","agent_id":"a"`},
	} {
		w := httptest.NewRecorder()
		row := &store.StoredTrace{AgentID: "a", TraceID: "t", CardID: "ac-1", SessionID: "s", EventTime: at, Received: at, Sequence: 1, Digest: good.Digest, Raw: []byte(c.raw)}
		code, err := writeTraces(w, []*store.StoredTrace{row}, "")
		if err != nil || !strings.Contains(w.Body.String(), c.want) || !strings.Contains(w.Body.String(), `"altered":true`) {
			t.Errorf("%q: %d %s, %v", c.raw, code, w.Body, err)
		}
		if c.raw[1] != 0xff {
			requests.Describes(t, httptest.NewRequest(http.MethodGet, "/v1/traces", nil), code, w.Header(), w.Body.String())
		}
	}
}
