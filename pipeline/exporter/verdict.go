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
// adds the answers to the plans. A plan that has answers is not queried again.
func (e *exporter) ask(ctx context.Context, jobs []*job) error {
	var asking []*job
	for _, j := range jobs {
		if j.judge != nil && j.part.Plan.Session.Answers == nil {
			asking = append(asking, j)
		}
	}
	found := make([]session.Found, len(asking))
	if err := e.findPreceding(ctx, asking); err != nil {
		return err
	}
	if err := e.findNumbers(ctx, asking, found); err != nil {
		return err
	}
	if err := e.findPriors(ctx, asking, found); err != nil {
		return err
	}
	for i, j := range asking {
		answers := j.judge.Answers(found[i])
		j.part.Plan.Session.Answers, j.fixed = &answers, false
	}
	return nil
}

// findPreceding looks up with one query the trace before each session by its agent's counter.
func (e *exporter) findPreceding(ctx context.Context, jobs []*job) error {
	var questions []store.PrecedingQuestion
	var askers []*job // the job of each question
	for _, j := range jobs {
		if q := j.judge.Preceding(); q != nil {
			questions = append(questions, store.PrecedingQuestion{AgentID: j.part.AgentID, SessionID: j.part.SessionID, NumberQuestion: *q})
			askers = append(askers, j)
		}
	}
	answers, err := e.rows.PrecedingNumbers(ctx, questions)
	for i := range answers {
		askers[i].judge.Precede(answers[i])
	}
	return err
}

// findNumbers looks up the missing sequence numbers of all jobs with one query.
func (e *exporter) findNumbers(ctx context.Context, jobs []*job, found []session.Found) error {
	var questions []store.NumberQuestion
	var asker []int // the index of the job of each question
	for i, j := range jobs {
		if q := j.judge.Questions().Numbers; q != nil {
			questions = append(questions, store.NumberQuestion{AgentID: j.part.AgentID, NumberQuestion: *q})
			asker = append(asker, i)
		}
	}
	answers, err := e.rows.NumberedTraces(ctx, questions)
	for q := range answers {
		found[asker[q]].Numbers = answers[q]
	}
	return err
}

// findPriors looks up the prior traces of all jobs, lookUpTraces at a time.
func (e *exporter) findPriors(ctx context.Context, jobs []*job, found []session.Found) error {
	askers := map[string][]int{}
	for i, j := range jobs {
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
