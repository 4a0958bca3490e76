package exporter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// lookUpTraces is how many ids one query looks up.
const lookUpTraces = 1000

// ask queries what the verdicts on a group of sessions need to know about other sessions, and
// adds the answers to the plans. A plan that has answers is not queried again. Each kind of
// question is one query for all jobs.
func (e *exporter) ask(ctx context.Context, jobs []*job) error {
	asking := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.judge == nil || j.part.Plan.Session.Answers != nil })
	found := make([]session.Found, len(asking))
	// collect returns the questions, and of which job each one is.
	collect := func(question func(*session.Judge) *session.NumberQuestion) (questions []store.NumberQuestion, of []int) {
		for i, j := range asking {
			if q := question(j.judge); q != nil {
				questions = append(questions, store.NumberQuestion{AgentID: j.part.AgentID, SessionID: j.part.SessionID, NumberQuestion: *q})
				of = append(of, i)
			}
		}
		return questions, of
	}

	// The trace before each session by its agent's counter. The other questions depend on it.
	preceding, of := collect((*session.Judge).Preceding)
	before, err := e.rows.PrecedingNumbers(ctx, preceding)
	if err != nil {
		return err
	}
	for i := range before {
		asking[of[i]].judge.Precede(before[i])
	}

	// The traces with the sequence numbers that are missing.
	numbers, of := collect(func(judge *session.Judge) *session.NumberQuestion { return judge.Questions().Numbers })
	numbered, err := e.rows.NumberedTraces(ctx, numbers)
	if err != nil {
		return err
	}
	for i := range numbered {
		found[of[i]].Numbers = numbered[i]
	}

	// The prior traces that are not in the session.
	askers := map[string][]int{}
	for i, j := range asking {
		for _, id := range j.judge.Questions().Traces {
			askers[id] = append(askers[id], i)
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(askers)), lookUpTraces) {
		traces, err := e.rows.PriorTraces(ctx, ids)
		if err != nil {
			return err
		}
		for _, t := range traces {
			for _, i := range askers[t.TraceID] {
				found[i].Traces = append(found[i].Traces, t)
			}
		}
	}

	for i, j := range asking {
		answers := j.judge.Answers(found[i])
		j.part.Plan.Session.Answers, j.fixed = &answers, false
	}
	return nil
}

// alert publishes an alert for each verdict on a session that has findings. Its data is the
// verdict as JSON, as in the verifier's alerts on traces.
func (e *exporter) alert(ctx context.Context, verdicts []*schema.SessionVerdict) error {
	var alerts []wire.Alert
	for _, v := range verdicts {
		if len(v.Findings) == 0 {
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode the verdict on session %q: %w", v.SessionID, err)
		}
		id := session.AlertPrefix + session.VerdictID(e.cfg.Tenant, v).String()
		alerts = append(alerts, wire.Alert{Kind: subject.AlertFinding, Agent: v.AgentID, ID: id, Data: data})
	}
	return e.broker.PublishAlerts(ctx, alerts)
}
