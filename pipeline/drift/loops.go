package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// follow adds an applied trace to the run of equal acts of its session. If it makes a loop, there is an
// alert while the session runs. This stage finds loops because it alone applies an agent's traces in
// order, one after the other, and keeps a state for each agent. aap/session defines what a loop is.
// The verdict on the session has the finding again.
func (f *fold) follow(e *entry, loops *session.Loops, point *store.DriftPoint) {
	finding, found := loops.Add(e.act, e.sample.TraceID)
	if !found {
		return
	}
	finding.Description, _ = redact.AllRules.Message(finding.Description) // the name of an action may contain a secret
	f.out.loops = append(f.out.loops, store.LoopAlert{
		LoopAlert: session.LoopAlert(point.AgentID, point.CardID, point.SessionID, point.TraceDigest, point.EventTime, finding),
		Received:  point.Received, RetainUntil: time.Time(point.RetainUntil), StreamCreated: point.StreamCreated, Sequence: point.Sequence,
	})
}

func publishLoops(ctx context.Context, outlet Outlet, loops []store.LoopAlert) error {
	messages := make([]wire.Alert, len(loops))
	for i := range loops {
		alert := &loops[i].LoopAlert
		data, err := json.Marshal(alert)
		if err != nil {
			return fmt.Errorf("encode the alert about a loop of session %q: %w", alert.SessionID, err)
		}
		messages[i] = wire.Alert{Kind: subject.AlertFinding, Agent: alert.AgentID, ID: session.LoopAlertPrefix + alert.AlertID.String(), Data: data}
	}
	return outlet.PublishAlerts(ctx, messages)
}
