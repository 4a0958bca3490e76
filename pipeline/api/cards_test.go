package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// card returns a valid card.
func card(agent, id string) string { return requests.Card(agent, id) }

func (r *rig) putCard(id, text string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPut, "/v1/cards/"+url.PathEscape(id), strings.NewReader(text),
		append([]string{"Content-Type: application/aap-alignment-card+json"}, headers...)...)
}

func (r *rig) endSession(agent, session string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/sessions/end", strings.NewReader(fmt.Sprintf(`{"agent_id":%q,"session_id":%q}`, agent, session)),
		append([]string{"Content-Type: application/json"}, headers...)...)
}

func TestCardIsRegisteredOnce(t *testing.T) {
	r := start(t)
	for _, id := range []string{"card-1", "did:web:a/../cards 1?x=%2F", "a..b", "ä"} {
		text := card("did:web:a", id)
		answer := r.putCard(id, text)
		if answer.code != http.StatusCreated || !strings.Contains(answer.text, `"agent_id":"did:web:a"`) {
			t.Errorf("%q: the answer is %d %s", id, answer.code, answer.text)
		}
		if again := r.putCard(id, " "+strings.Replace(text, ":90", ": 90", 1)); again.code != http.StatusOK || again.text != answer.text {
			t.Errorf("%q, the same content: the answer is %d %s", id, again.code, again.text)
		}
		other := r.putCard(id, strings.Replace(text, ":90", ":91", 1))
		if other.code != http.StatusConflict || other.problem(t).Word != "changed" || !strings.Contains(other.text, "new card_id") {
			t.Errorf("%q, other content: the answer is %d %s", id, other.code, other.text)
		}
		registry, err := cards.Open(t.Context(), r.broker.Connect(), config.DefaultCardCacheBytes)
		if err != nil {
			t.Fatal(err)
		}
		if known, err := registry.Lookup(t.Context(), id); err != nil || string(known.Card.Raw) != text {
			t.Errorf("%q is registered as %v, error %v", id, known, err)
		}
	}
}

func TestCardIsRefused(t *testing.T) {
	r := start(t)
	good := card("did:web:a", "card-1")
	large := strings.Replace(good, "{", "{"+strings.Repeat(" ", 2*schema.MaxCardBytes), 1)
	for name, c := range map[string]struct {
		text    string
		code    int
		pointer string
	}{
		"another id":      {card("did:web:a", "card-2"), http.StatusBadRequest, "/card_id"},
		"undefined value": {strings.Replace(good, `"honesty"`, `"kindness"`, 1), http.StatusBadRequest, "/values/declared/0"},
		"bad condition": {strings.Replace(good, `"escalation_triggers":[]`, `"escalation_triggers":[{"condition":"a ==","action":"escalate","reason":"r"}]`, 1),
			http.StatusBadRequest, "/autonomy_envelope/escalation_triggers/0/condition"},
		"not JSON":  {"{", http.StatusBadRequest, ""},
		"too large": {large, http.StatusRequestEntityTooLarge, ""},
	} {
		answer := r.putCard("card-1", c.text)
		if answer.code == http.StatusCreated {
			t.Errorf("%s: registered", name)
			continue
		}
		p := answer.problem(t)
		if answer.code != c.code || c.pointer != "" && (len(p.Faults) == 0 || p.Faults[0].Pointer != c.pointer) {
			t.Errorf("%s: the answer is %d %s, want %d with %s", name, answer.code, answer.text, c.code, c.pointer)
		}
	}
	answer := r.send(http.MethodPut, "/v1/cards/card-1", strings.NewReader(good), "Content-Type: text/plain")
	if answer.code != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: the answer is %d %s", answer.code, answer.text)
	}
	if created := r.putCard("card-1", good); created.code != http.StatusCreated {
		t.Errorf("after the refusals: the answer is %d %s", created.code, created.text)
	}
}

// TestEndOfSession checks that the request for the end of a session covers every trace that was
// accepted before it, follows them in their stream, and goes to the partition of its agent's receipts.
func TestEndOfSession(t *testing.T) {
	r := start(t)
	agents := []string{"did:web:a", "b", "../../etc/passwd", "ä agent", "5"}
	committer := r.broker.Connect().NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	for i, agent := range agents {
		data := fmt.Appendf(nil, "{%d}", i)
		if _, err := committer.Publish(t.Context(), []stream.Record{{Agent: agent, Data: data, Digest: schema.DigestOf(data)}}); err != nil {
			t.Fatal(err)
		}
		answer := r.endSession(agent, "../../etc/passwd")
		want := fmt.Sprintf(`{"agent_id":%q,"session_id":"../../etc/passwd","through_sequence":%d}`+"\n", agent, 2*i+1)
		if answer.code != http.StatusAccepted || answer.text != want {
			t.Errorf("the answer is %d %s, want 202 %s", answer.code, answer.text, want)
		}
	}
	partitions := map[string]int{}
	var among []wire.EndRequest
	for _, m := range r.broker.Read(stream.Traces, stream.VerifierConsumer, 2*len(agents)) {
		partitions[m.Agent] = m.Partition
		if end, ok := wire.EndOf(m.Agent, m.Data); ok {
			among = append(among, end)
		}
	}
	state, err := r.api.broker.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range r.broker.Read(stream.Receipts, "", len(agents)) {
		want := wire.EndRequest{AgentID: agents[i], SessionID: "../../etc/passwd", ThroughSequence: uint64(2*i + 1)}
		named := want
		named.Stream = state.Created.UnixNano()
		_, end, err := wire.DecodeReceipts(m.Data, nil)
		if err != nil || *end != named || len(among) != len(agents) || among[i] != want {
			t.Errorf("request %+v, among the traces %+v, error %v", end, among, err)
		}
		if want := fmt.Sprint("receipts.", partitions[agents[i]]); m.Subject != want || partitions[agents[i]] != subject.Partition(agents[i]) {
			t.Errorf("the request for %s is on %s, want %s", agents[i], m.Subject, want)
		}
	}
}

func TestEndOfSessionIsRefused(t *testing.T) {
	r := start(t)
	for text, want := range map[string]string{
		`{"agent_id":"a"}`:   `"/session_id"`,
		`{"session_id":"s"}`: `"/agent_id"`,
		`{"agent_id":"a","session_id":"s","force":true}`:  "force",
		`{"agent_id":"a","agent_id":"b"}`:                 "duplicate",
		`{"agent_id":"a","session_id":"s"}{}`:             "want {agent_id, session_id}",
		`{"agent_id":"` + strings.Repeat("a", 600) + `"}`: "600 bytes: want at most 512",
	} {
		answer := r.send(http.MethodPost, "/v1/sessions/end", strings.NewReader(text), "Content-Type: application/json")
		if answer.code != http.StatusBadRequest || !strings.Contains(answer.text, want) {
			t.Errorf("%.60s: the answer is %d %s, want 400 with %s", text, answer.code, answer.text, want)
		}
	}
}

// repeated returns a JSON array with n copies of a text.
func repeated(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// TestHostileCardsAreRefused checks that each is refused with a message, and that the next card
// registers.
func TestHostileCardsAreRefused(t *testing.T) {
	r := start(t)
	good := card("a", "card-1")
	triggers := func(n int, condition string) string {
		return strings.Replace(good, `"escalation_triggers":[]`,
			`"escalation_triggers":`+repeated(n, fmt.Sprintf(`{"condition":%q,"action":"log","reason":""}`, condition)), 1)
	}
	for name, c := range map[string]struct {
		card    string
		code    int
		pointer string
		message string
	}{
		"10,000 triggers":          {triggers(10_000, "a"), http.StatusBadRequest, "", "a card may have 262144"},
		"10,000 long triggers":     {triggers(10_000, "purchase_value > 100"), http.StatusRequestEntityTooLarge, "", "larger than 524288 bytes"},
		"5,000 triggers":           {triggers(5_000, "a"), http.StatusBadRequest, "/autonomy_envelope/escalation_triggers", "5000 triggers, a card may have 500"},
		"10,000 parentheses":       {triggers(1, strings.Repeat("(", 10_000)+"a"+strings.Repeat(")", 10_000)), http.StatusBadRequest, "/autonomy_envelope/escalation_triggers/0/condition", "column 1: 20001 bytes"},
		"parentheses in the limit": {triggers(1, strings.Repeat("(", 2_000)+"a"), http.StatusBadRequest, "/autonomy_envelope/escalation_triggers/0/condition", "column 33: parentheses"},
		"patterns that blow up":    {triggers(400, `a matches '(`+strings.Repeat("b", 400)+`){1000}'`), http.StatusBadRequest, "/autonomy_envelope/escalation_triggers/0/condition", "column 11: the pattern is too large"},
		"100,000 bounded actions":  {strings.Replace(good, `["search"]`, repeated(100_000, `"a"`), 1), http.StatusBadRequest, "", "a card may have 262144"},
		"no zone":                  {strings.Replace(good, "00:00:00Z", "00:00:00", 1), http.StatusBadRequest, "/issued_at", "RFC 3339"},
		"year 1":                   {strings.Replace(good, "2026", "0001", 1), http.StatusBadRequest, "/issued_at", "zero time"},
		"year 9999":                {strings.Replace(good, "2026", "9999", 1), http.StatusBadRequest, "/issued_at", "outside"},
	} {
		answer := r.putCard("card-1", c.card)
		if answer.code != c.code {
			t.Errorf("%s: the answer is %d %.300s", name, answer.code, answer.text)
			continue
		}
		p := answer.problem(t)
		message, pointer := p.Message, ""
		if len(p.Faults) > 0 {
			message, pointer = p.Faults[0].Message, p.Faults[0].Pointer
		}
		if pointer != c.pointer || !strings.Contains(message, c.message) || len(message) > 300 {
			t.Errorf("%s: %s: %.300s", name, pointer, message)
		}
	}
	if created := r.putCard("card-1", triggers(schema.MaxTriggers, `note matches '(a+)+$'`)); created.code != http.StatusCreated {
		t.Errorf("after the refusals: the answer is %d %s", created.code, created.text)
	}
}
