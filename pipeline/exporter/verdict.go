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

	// The trace before each session by its agent's counter. The other questions depend on it.
	var preceding []store.PrecedingQuestion
	var of []int // the job of each question
	for i, j := range asking {
		if q := j.judge.Preceding(); q != nil {
			preceding = append(preceding, store.PrecedingQuestion{AgentID: j.part.AgentID, SessionID: j.part.SessionID, NumberQuestion: *q})
			of = append(of, i)
		}
	}
	before, err := e.rows.PrecedingNumbers(ctx, preceding)
	if err != nil {
		return err
	}
	for i := range before {
		asking[of[i]].judge.Precede(before[i])
	}

	// The traces with the sequence numbers that are missing.
	var numbers []store.NumberQuestion
	of = nil
	for i, j := range asking {
		if q := j.judge.Questions().Numbers; q != nil {
			numbers = append(numbers, store.NumberQuestion{AgentID: j.part.AgentID, NumberQuestion: *q})
			of = append(of, i)
		}
	}
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

// sessionVerdicts returns the verdicts on the sealed sessions.
func sessionVerdicts(jobs []*job) []*schema.SessionVerdict {
	var verdicts []*schema.SessionVerdict
	for _, j := range jobs {
		if j.bundle != nil && j.part.Verdict != nil {
			verdicts = append(verdicts, j.part.Verdict)
		}
	}
	return verdicts
}

// alert publishes an alert for each verdict on a session that has findings. Its data is the
// verdict as JSON, as in the verifier's alerts on traces.
func (e *exporter) alert(ctx context.Context, jobs []*job) error {
	var alerts []wire.Alert
	for _, v := range sessionVerdicts(jobs) {
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
	if len(alerts) == 0 {
		return nil
	}
	return e.broker.PublishAlerts(ctx, alerts)
}
