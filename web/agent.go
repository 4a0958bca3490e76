package web

import (
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

// agentPage is the data of agent.html.
type agentPage struct {
	AgentID string
	Alerts  []rows.Alert
}

// agent answers with what is known about one agent.
func (s *server) agent(v *visit) (page, error) {
	id := v.URL.Query().Get("id")
	if id == "" || len(id) > schema.MaxIDBytes || !v.Grant.SpeaksFor(id) {
		return page{}, missing{"agent of this name"}
	}
	alerts, err := s.rows.Alerts(v.Context(), id, 50)
	if err != nil {
		return page{}, err
	}
	return page{file: "agent.html", title: id, data: agentPage{AgentID: id, Alerts: alerts}}, nil
}
