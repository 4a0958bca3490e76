package coherence

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// draft is a card for a test; zero members are left out.
type draft struct {
	id, agent  string
	declared   []string
	refuses    []string
	hierarchy  string
	subsumes   map[string][]string
	priority   map[string]float64
	bounded    []string
	forbidden  []string
	relation   string
	contact    string
	expires    string
	extraOrder bool // write the definitions in the opposite order
}

// tester is the common part of rapid.T and testing.T that these tests use.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (d draft) card(t tester) *schema.Card {
	t.Helper()
	definitions := `{`
	ids := distinct(d.declared, mapKeys(d.subsumes), mapKeys(d.priority))
	for n := range ids {
		id := ids[n]
		if d.extraOrder {
			id = ids[len(ids)-1-n]
		}
		def := map[string]any{"description": "what " + id + " means"}
		if list, ok := d.subsumes[id]; ok {
			def["subsumes"] = list
		}
		if p, ok := d.priority[id]; ok {
			def["priority"] = p
		}
		definitions += map[bool]string{true: ",", false: ""}[n > 0] + text(t, id) + ":" + text(t, def)
	}
	values := `{"declared":` + text(t, append([]string{}, d.declared...)) + `,"definitions":` + definitions + `}` +
		`,"conflicts_with":` + text(t, append([]string{}, d.refuses...))
	if d.hierarchy != "" {
		values += `,"hierarchy":` + text(t, d.hierarchy)
	}
	principal := map[string]any{"type": "human", "relationship": "delegated_authority"}
	if d.relation != "" {
		principal["relationship"] = d.relation
	}
	if d.contact != "" {
		principal["escalation_contact"] = d.contact
	}
	expires := ""
	if d.expires != "" {
		expires = `,"expires_at":` + text(t, d.expires)
	}
	raw := `{"aap_version":"0.1.0","card_id":` + text(t, d.cardID()) + `,"agent_id":` + text(t, d.agentID()) +
		`,"issued_at":"2026-01-01T00:00:00Z"` + expires + `,"principal":` + text(t, principal) + `,"values":` + values + `}` +
		`,"autonomy_envelope":{"bounded_actions":` + text(t, append([]string{}, d.bounded...)) +
		`,"forbidden_actions":` + text(t, append([]string{}, d.forbidden...)) + `,"escalation_triggers":[]}` +
		`,"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`
	card, err := schema.DecodeCard([]byte(raw))
	if err != nil {
		t.Fatalf("card: %v\n%.500s", err, raw)
	}
	return card
}

func (d draft) cardID() string {
	if d.id == "" {
		return "ac"
	}
	return d.id
}

func (d draft) agentID() string {
	if d.agent == "" {
		return "agent"
	}
	return d.agent
}

func (d draft) party(t tester) Party {
	t.Helper()
	return Party{Card: d.card(t)}
}

func mapKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m { // map order is random; some tests prove that it does not matter
		keys = append(keys, key)
	}
	return keys
}

func text(t tester, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(b)
}

func assessor(t tester) *Assessor {
	t.Helper()
	a, err := NewAssessor(aap.DefaultThresholds())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}

// check judges two drafts.
func check(t tester, initiator, responder draft, task Task) schema.Assessment {
	t.Helper()
	found := assessor(t).Check(initiator.party(t), responder.party(t), task, now)
	invariants(t, found)
	return found
}

// invariants checks the invariants of every assessment.
func invariants(t tester, a schema.Assessment) {
	t.Helper()
	if a.Score < 0 || a.Score > 1 {
		t.Fatalf("score %v", a.Score)
	}
	if a.Compatible != a.Proceed || a.Proceed != (len(a.Reasons) == 0) {
		t.Fatalf("compatible %v, proceed %v, reasons %v", a.Compatible, a.Proceed, a.Reasons)
	}
	if a.Alignment.Matched == nil || a.Alignment.Unmatched == nil || a.Alignment.Conflicts == nil ||
		a.Conditions == nil || a.Reasons == nil || a.ResolutionSteps == nil {
		t.Fatalf("a list is null: %+v", a)
	}
	if a.Metadata.EngineVersion != EngineVersion || a.Metadata.Profile != "spec" {
		t.Fatalf("metadata %+v", a.Metadata)
	}
	if a.Proceed && (a.ProposedResolution != nil) {
		t.Fatalf("proceed, and a resolution is proposed: %+v", a.ProposedResolution)
	}
}

// codes returns the codes of the reasons not to proceed.
func codes(a schema.Assessment) []string {
	list := []string{}
	for _, r := range a.Reasons {
		list = append(list, string(r.Side)+":"+r.Code)
	}
	return list
}

// course returns the steps as short texts.
func course(a schema.Assessment) []string {
	list := []string{}
	for _, s := range a.ResolutionSteps {
		list = append(list, string(s.Step)+" "+s.Subject+" "+string(s.Outcome))
	}
	return list
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if text(t, got) != text(t, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
