package seal

import (
	"fmt"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// Judge begins the verdict on a part whose traces are compared and in order, each
// with its verdict.
func Judge(p *Part, numbered bool) (*session.Judge, error) {
	head := session.Head{AgentID: p.AgentID, SessionID: p.SessionID, Part: p.Plan.Part, LastPart: p.Plan.LastPart, Numbered: numbered}
	judge := session.New(head, p.Plan.Session.Carry)
	var decoder schema.Decoder
	var trace schema.Trace
	for _, stored := range p.Traces {
		if err := decoder.Admit(&trace, stored.AgentID, stored.Raw); err != nil {
			return nil, fmt.Errorf("trace %s: %w", stored.TraceID, err)
		}
		judge.Add(&trace, stored.Verdict)
	}
	return judge, nil
}
