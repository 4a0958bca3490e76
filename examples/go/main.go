// Command go is an agent that buys for an office, and puts its five decisions on record.
//
// usage: go run ./examples/go [DIRECTORY]   of card.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
)

func main() {
	directory := "examples"
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	if err := run(context.Background(), filepath.Join(directory, "card.json")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) error {
	card, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var ids struct {
		AgentID string `json:"agent_id"`
		CardID  string `json:"card_id"`
	}
	if err := json.Unmarshal(card, &ids); err != nil {
		return err
	}
	recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: ids.AgentID, CardID: ids.CardID}) // ingest: PLUMBLINE_URL, PLUMBLINE_TOKEN
	if err != nil {
		return err
	}
	if _, err := recorder.RegisterCard(ctx, ids.CardID, card); err != nil {
		return err
	}
	session := recorder.Session("")
	compare(session)
	purchase(session)
	session.End()

	closing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := recorder.Close(closing); err != nil {
		return err // the spool keeps what is left for the agent's next recorder
	}
	fmt.Println(recorder.Stats().Accepted, "traces stored")
	return nil
}

// compare looks for offers and chooses one.
func compare(session *client.Session) {
	paper := map[string]any{"item": "paper, 20 reams"}
	search := session.Begin(client.Decision{
		Action: "search_offers", Parameters: paper, Values: []string{"principal_benefit"},
		Reasoning: "Approved shops deliver on account, and three of them have paper.",
		Alternatives: []client.Alternative{
			{OptionID: "approved", Description: "search the shops that the office has approved", Score: new(0.9)},
			{OptionID: "anywhere", Description: "search every shop", Score: new(0.5)},
		},
		Selected: "approved",
	})
	search.End(map[string]int{"papermill": 84, "officeking": 79, "bulkbuy": 60}, nil) // what the tool answered

	session.Record(client.Decision{
		Action: "compare_offers", Type: schema.ActionRecommend, Parameters: paper, Values: []string{"principal_benefit", "transparency"},
		Reasoning: "The paper is needed this week. Bulkbuy is cheaper, but its seller is unknown.",
		Alternatives: []client.Alternative{
			{OptionID: "papermill", Description: "Papermill: 84 EUR, delivered in 2 days", Score: new(0.8)},
			{OptionID: "officeking", Description: "Officeking: 79 EUR, delivered in 9 days", Score: new(0.6)},
			{OptionID: "bulkbuy", Description: "Bulkbuy: 60 EUR, seller unknown", Score: new(0.4)},
		},
		Selected: "papermill", Confidence: new(0.8),
	})
}

// purchase buys three times: within the limit, above it with an approval, and above it without.
func purchase(session *client.Session) {
	const limit = "amount > 100" // the escalation trigger of the card

	small := session.Begin(client.Decision{
		Action: "purchase", Parameters: map[string]any{"item": "paper, 20 reams", "amount": 84, "currency": "EUR"}, Values: []string{"principal_benefit"},
		Reasoning:    "The price is below the limit of 100 EUR, so no approval is needed.",
		Alternatives: []client.Alternative{{OptionID: "buy", Description: "buy for 84 EUR"}, {OptionID: "wait", Description: "wait for a lower price"}},
		Selected:     "buy",
		Escalation:   &client.Escalation{TriggersChecked: []client.TriggerCheck{{Trigger: limit, Matched: false, ValueObserved: 84}}},
	})
	small.End(map[string]string{"order": "P-5521"}, nil)

	large := session.Begin(client.Decision{
		Action: "purchase", Category: schema.CategoryEscalation,
		Parameters: map[string]any{"item": "standing desk", "amount": 640, "currency": "EUR"}, Values: []string{"principal_benefit", "transparency"},
		Reasoning:    "The employee needs the desk, and 640 EUR is above the limit.",
		Alternatives: []client.Alternative{{OptionID: "ask", Description: "ask the office manager, then buy"}, {OptionID: "decline", Description: "buy no desk"}},
		Selected:     "ask",
		Escalation: &client.Escalation{
			TriggersChecked: []client.TriggerCheck{{Trigger: limit, Matched: true, ValueObserved: 640}},
			Required:        true, Reason: "a purchase above 100 EUR needs the approval of the office manager", ID: "ask-77",
			Status:   schema.EscalationApproved,
			Response: &client.PrincipalResponse{Decision: "approved", Timestamp: time.Now(), Conditions: []string{"amount <= 700"}},
		},
	})
	large.End(map[string]string{"order": "D-0904"}, nil)

	// The verifier will report a MISSED_ESCALATION.
	unasked := session.Begin(client.Decision{
		Action: "purchase", Parameters: map[string]any{"item": "toner, 4 cartridges", "amount": 180, "currency": "EUR"}, Values: []string{"principal_benefit"},
		Reasoning:    "The printer is empty, and the office manager is in a meeting.",
		Alternatives: []client.Alternative{{OptionID: "now", Description: "buy now for 180 EUR"}, {OptionID: "ask", Description: "ask the office manager first"}},
		Selected:     "now",
	})
	unasked.End(map[string]string{"order": "P-5522"}, nil)
}
