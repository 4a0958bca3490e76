package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/schema"
)

// assessment is the result of operation coherence under profile spec.
type assessment struct {
	schema.Assessment
	Incomplete map[string]string `json:"incomplete_cards,omitempty"` // why a card cannot be registered, by its place
}

// fleetAssessment is the result of operation fleet under profile spec.
type fleetAssessment struct {
	coherence.Fleet
	Incomplete map[string]string `json:"incomplete_cards,omitempty"`
}

func specCoherence(r request) (any, error) {
	a, required, err := r.coherence()
	if err != nil {
		return nil, err
	}
	answer := assessment{Incomplete: map[string]string{}}
	mine, mineErr := r.party("my_card", answer.Incomplete)
	theirs, theirsErr := r.party("their_card", answer.Incomplete)
	if err := errors.Join(mineErr, theirsErr); err != nil {
		return nil, err
	}
	answer.Assessment = a.Check(mine, theirs, coherence.Task{Required: required}, r.now)
	return answer, nil
}

func specFleet(r request) (any, error) {
	a, required, err := r.coherence()
	if err != nil {
		return nil, err
	}
	var cards []struct {
		AgentID string          `json:"agentId"`
		Card    json.RawMessage `json:"card"`
	}
	if err := r.decode("cards", &cards); err != nil {
		return nil, err
	}
	answer := fleetAssessment{Incomplete: map[string]string{}}
	members := make([]coherence.Member, len(cards))
	for i, entry := range cards {
		card, err := judgeable(fmt.Sprintf("cards[%d].card", i), entry.Card, answer.Incomplete)
		if err != nil {
			return nil, err
		}
		members[i] = coherence.Member{ID: entry.AgentID, Party: coherence.Party{Card: card}}
	}
	answer.Fleet, err = a.Fleet(members, required, r.now)
	return answer, err
}

// coherence returns the assessor, and the values that the request's task requires.
func (r request) coherence() (*coherence.Assessor, []string, error) {
	a, err := coherence.NewAssessor(aap.DefaultThresholds())
	if err != nil || !r.has("task_values") {
		return a, nil, err
	}
	var required []string
	err = r.decode("task_values", &required)
	return a, required, err
}

func (r request) party(name string, incomplete map[string]string) (coherence.Party, error) {
	card, err := judgeable(name, r.members[name], incomplete)
	return coherence.Party{Card: card}, err
}

// judgeable reads a card. A card that cannot be registered is accepted if it declares values,
// since only values and the expiry are compared; incomplete records why it cannot be
// registered.
func judgeable(place string, raw []byte, incomplete map[string]string) (*schema.Card, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s: missing", place)
	}
	card, refusal := schema.DecodeCard(raw)
	if refusal == nil {
		return card, nil
	}
	var loose struct {
		CardID    string      `json:"card_id"`
		AgentID   string      `json:"agent_id"`
		ExpiresAt schema.Time `json:"expires_at"`
		Values    struct {
			Declared      []string `json:"declared"`
			ConflictsWith []string `json:"conflicts_with"`
			Hierarchy     string   `json:"hierarchy"`
			Definitions   map[string]struct {
				Priority *float64 `json:"priority"`
				Subsumes []string `json:"subsumes"`
			} `json:"definitions"`
		} `json:"values"`
	}
	if err := json.Unmarshal(raw, &loose); err != nil || loose.Values.Declared == nil {
		return nil, fmt.Errorf("%s: %w", place, refusal)
	}
	incomplete[place] = refusal.Error()
	card = &schema.Card{CardID: loose.CardID, AgentID: loose.AgentID, ExpiresAt: loose.ExpiresAt.Time, Values: schema.Values{
		Declared: loose.Values.Declared, ConflictsWith: loose.Values.ConflictsWith, Hierarchy: loose.Values.Hierarchy,
	}}
	for _, id := range slices.Sorted(maps.Keys(loose.Values.Definitions)) {
		def := schema.ValueDefinition{ID: id, Subsumes: loose.Values.Definitions[id].Subsumes}
		if p := loose.Values.Definitions[id].Priority; p != nil {
			def.Priority, def.HasPriority = *p, true
		}
		card.Values.Definitions = append(card.Values.Definitions, def)
	}
	return card, nil
}
