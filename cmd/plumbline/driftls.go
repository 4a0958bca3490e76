package main

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/store"
)

type driftLsCommand struct {
	readerFlags `embed:""`
	Agent       string `help:"Only alerts about this agent."`
	Open        bool   `help:"Only open alerts."`
	Limit       int    `default:"100" help:"Greatest number of alerts."`
	JSON        bool   `help:"Print one JSON object for each alert."`
}

// Help explains the states and returns the examples.
func (*driftLsCommand) Help() string {
	return `An alert is open while the agent, under that card, behaves unlike its baseline. It is closed when the agent behaves as before again. "ended" means that it no longer drifts and nothing closed the alert, as in alerts of earlier versions.` +
		"\n\n" + examples(
		"plumbline drift ls --open",
		"plumbline drift ls --agent did:web:buyer.example --json",
	)
}

// Run lists the alerts, open ones first. An empty list is no error.
func (c *driftLsCommand) Run(ctx context.Context, con *console) error {
	if c.Limit < 1 {
		return usagef("--limit %d: want 1 or more", c.Limit)
	}
	return c.read(ctx, func(s *store.Store) error {
		alerts, err := s.ListDriftAlerts(ctx, c.Agent, c.Open, c.Limit)
		if err != nil {
			return err
		}
		if len(alerts) == 0 && c.Agent != "" { // a name that is wrong must not look like an agent without alerts
			known, err := s.DriftOf(ctx, c.Agent, "", 0)
			if err != nil {
				return err
			}
			if len(known) == 0 {
				return noSuchAgent(c.Agent, "", c.Tenant)
			}
		}
		if c.JSON {
			return writeEach(con.out, alerts)
		}
		t := newTable(con.out)
		t.row("state", "opened", "closed", "agent", "card", "kind", "traces", "strength", "what changed")
		for i := range alerts {
			a := &alerts[i]
			t.row(a.State, a.OpenedAt, a.ClosedAt, a.AgentID, a.CardID, a.Direction, a.Count, fmt.Sprintf("%.1f", a.Strength), a.Summary)
		}
		return t.Flush()
	})
}
