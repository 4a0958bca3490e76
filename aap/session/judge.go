package session

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// Head is what is known about a part before its traces are read.
type Head struct {
	AgentID   string
	SessionID string
	Part      int64 // from 1
	LastPart  bool  // the session is over, as far as is known
	Numbered  bool  // every trace of the part has a sequence number: the log is ordered by number, otherwise by time
}

var checks = []string{
	"sequence_numbers", "prior_traces", "turns", "escalations", "answers", "approvals", "denials", "loops", "similarity",
}

// Judge verifies one part of a session. Call New, Add for each trace in the order of the audit
// log, Preceding and Precede, Questions, Answers, Finish. A Judge belongs to one goroutine.
type Judge struct {
	head   Head
	traces schema.SessionTraces
	worst  schema.Recommendation // of the traces' own verdicts
	scores scores

	found       findings
	earliest    int64 // event time
	latest      int64
	turns       rising
	clocks      rising
	numbers     numbers
	priors      priors
	escalations escalations
	decisions   decisions
	declined    []declined
	suspected   []suspected
	repeated    repeated
	lost        int64 // items that the previous parts could not pass on
}

// New returns a judge for a part. previous comes from the previous part; it is nil for the first.
func New(head Head, previous *NextPart) *Judge {
	j := &Judge{
		head:     head,
		traces:   schema.SessionTraces{Violations: map[string]int64{}, Findings: map[string]int64{}},
		worst:    schema.Proceed,
		found:    findings{counts: map[string]int64{}},
		earliest: math.MaxInt64,
		latest:   math.MinInt64,
		priors:   priors{known: map[key]known{}, index: map[key]int{}},
	}
	if previous == nil {
		return j
	}
	if previous.Turn != nil {
		j.turns.newest = *previous.Turn
	}
	if previous.Number != nil {
		j.numbers.floor = *previous.Number
	}
	j.lost = previous.Lost
	j.escalations.open, j.escalations.closed = slices.Clone(previous.Open), slices.Clone(previous.Answered)
	for i := range j.escalations.open {
		o := &j.escalations.open[i]
		o.Acts = slices.Clone(o.Acts)
	}
	for _, d := range previous.Decided {
		j.decisions.add(d)
	}
	j.declined = slices.Clone(previous.Declined)
	j.repeated.resume(previous.Run)
	j.decisions.unread = 0 // the verdict on their own part has reported them
	return j
}

// Add judges the next trace with its verdict. It keeps neither of them.
func (j *Judge) Add(t *schema.Trace, v *schema.Verdict) {
	s := stamp{Time: t.Timestamp.UnixNano(), Number: t.Context.SequenceNumber, Numbered: t.Context.HasSequenceNumber,
		byNumber: j.head.Numbered}
	j.earliest, j.latest = min(j.earliest, s.Time), max(j.latest, s.Time)
	j.count(v)
	j.number(t, s)
	j.prior(t, s)
	j.turn(t, s)
	j.escalation(t, s)
	j.answer(t, s)
	j.decision(t, s)
	j.decline(t, s)
	j.loop(t, s)
}

// count counts the remarks of the trace's own verdict.
func (j *Judge) count(v *schema.Verdict) {
	c := &j.traces
	c.Total++
	if v.Status == schema.StatusCardUnknown {
		c.CardUnknown++
	} else {
		j.scores.add(v.SimilarityScore)
	}
	if v.Verified {
		c.Verified++
	}
	for i := range v.Violations {
		c.Violations[v.Violations[i].Type]++
	}
	for i := range v.Findings {
		c.Findings[v.Findings[i].Type]++
	}
	if v.RecommendedAction == schema.Deny || v.RecommendedAction == schema.Review && j.worst == schema.Proceed {
		j.worst = v.RecommendedAction
	}
}

// find adds a finding about a trace.
func (j *Judge) find(kind string, severity schema.Severity, traceID, field, description string) {
	j.found.add(schema.SessionFinding{Type: kind, Severity: severity, Description: description, TraceID: strings.Clone(traceID), Field: field})
}

// Finish returns the verdict with the given timestamp, and the state for the next part. It may
// be called repeatedly. If answers is nil, the verdict says that the answers are missing.
func (j *Judge) Finish(answers *Answers, at time.Time) (*schema.SessionVerdict, *NextPart) {
	found := &findings{listed: slices.Clone(j.found.listed), counts: maps.Clone(j.found.counts), critical: j.found.critical}
	j.priors.order(found)
	unchecked := append(j.unchecked(), j.answered(found, answers)...)
	for i := range j.suspected {
		found.add(j.suspected[i].finding)
	}
	for i := range j.escalations.early {
		found.add(j.escalations.early[i].finding)
	}
	j.repeated.open(found)
	if j.head.LastPart {
		j.escalations.unanswered(found)
	}
	recommended := j.worst
	switch {
	case found.critical || j.worst == schema.Deny:
		recommended = schema.Deny
	case len(found.counts) > 0:
		recommended = schema.Review
	}
	// The gravest are listed first, and otherwise in the order in which they were found.
	slices.SortStableFunc(found.listed, func(a, b schema.SessionFinding) int {
		return cmp.Compare(ranks[a.Severity], ranks[b.Severity])
	})
	listed := found.listed[:min(len(found.listed), schema.MaxSessionFindings)]
	v := &schema.SessionVerdict{
		Verified:          j.traces.Total > 0 && j.traces.Verified == j.traces.Total && !found.critical,
		RecommendedAction: recommended,
		AgentID:           j.head.AgentID, SessionID: j.head.SessionID,
		Part: j.head.Part, LastPart: j.head.LastPart,
		Timestamp:     at.UTC(),
		Traces:        j.traces,
		Findings:      append([]schema.SessionFinding{}, listed...),
		FindingCounts: found.counts,
		Similarity:    j.scores.similarity(),
		Metadata: schema.SessionMetadata{
			AlgorithmVersion: aap.AlgorithmVersion, EngineVersion: aap.EngineVersion, Profile: aap.ProfileSpec,
			ChecksPerformed: slices.Clone(checks), Unchecked: unchecked,
		},
	}
	return v, j.nextPart()
}

// unchecked lists the checks that a limit prevented.
func (j *Judge) unchecked() []string {
	said := []string{}
	say := func(n int64, text string) {
		if n > 0 {
			said = append(said, fmt.Sprintf(text, n))
		}
	}
	say(int64(j.numbers.lost), "sequence numbers: %d more gaps were not looked at")
	say(j.priors.skipped, "prior traces: %d more were not looked for")
	say(j.escalations.lost, "escalations: %d more were not followed")
	say(j.decisions.lost, "decisions of the principal: %d more were not followed")
	say(j.decisions.unread, "conditions of approvals: %d cannot be evaluated")
	say(j.lost, "escalations and decisions: %d of earlier parts were not followed")
	return said
}

// scores accumulates the similarities of the traces to their cards.
type scores struct {
	n, sum, least, sumIndex, sumIndex2, sumProduct float64
}

func (c *scores) add(score float64) {
	if c.n == 0 {
		c.least = score
	}
	c.least = min(c.least, score)
	c.sum += score
	c.sumIndex += c.n
	c.sumIndex2 += c.n * c.n
	c.sumProduct += c.n * score
	c.n++
}

// similarity returns the mean, the least value, and the slope of the least-squares line.
func (c *scores) similarity() schema.SessionSimilarity {
	if c.n == 0 {
		return schema.SessionSimilarity{}
	}
	s := schema.SessionSimilarity{Mean: rounded(c.sum / c.n), Min: rounded(c.least)}
	if spread := c.n*c.sumIndex2 - c.sumIndex*c.sumIndex; spread > 0 {
		s.Trend = rounded((c.n*c.sumProduct - c.sumIndex*c.sum) / spread)
	}
	return s
}

// rounded rounds to four decimals; never to -0.
func rounded(x float64) float64 { return math.Round(x*1e4)/1e4 + 0 }

// AlertPrefix precedes the VerdictID in the id of an alert about a session. It distinguishes
// such an alert from one about a trace.
const AlertPrefix = "session."

// VerdictID identifies a verdict over replays: it is the SHA-256 of tenant, session, part, the
// time that the part's plan fixed, engine version and profile.
func VerdictID(tenant string, v *schema.SessionVerdict) schema.Digest {
	return schema.DigestOf(fmt.Appendf(nil, "%q %q %q %d %d %q %q", tenant, v.AgentID, v.SessionID, v.Part, v.Timestamp.UnixNano(),
		v.Metadata.EngineVersion, v.Metadata.Profile))
}

// The limits of the memory of a Judge. The exporter's default of 10,000 traces a part is far
// below all of them.
const (
	maxGaps      = 16_384 // ranges of missing numbers
	maxKnown     = 65_536 // trace ids, the newest
	maxPriors    = 256    // prior traces of one trace that are checked
	maxEdges     = 16     // prior traces of one trace that a search for circles follows
	maxAsked     = 1_000  // prior traces that are not in the part
	maxOpen      = 1_024  // escalations without an answer
	maxActs      = 16     // executions under one open escalation
	maxDecisions = 1_024  // decisions of the principal, the newest
	maxDeclined  = 256    // actions that the agent denied, the newest
	maxSuspected = 256    // executions of denied actions, the newest, kept until the end
	maxListed    = 100    // findings of one type
	maxWalk      = 4_096  // steps through prior traces in the search for a circle

	// MaxNumbers is how many numbered traces of other sessions one part is compared with.
	MaxNumbers = 50_000

	maxMissing    = 100      // ranges listed in an Answers
	maxConditions = 64       // of one approval, as in package aap
	maxCarry      = 12 << 10 // bytes of ids and texts of each kind for the next part
	maxCarryItems = 64       // of each kind
)

// ranks orders severities, the gravest first.
var ranks = map[schema.Severity]int{schema.SeverityCritical: 0, schema.SeverityHigh: 1, schema.SeverityMedium: 2}

// findings collects the findings. All of them are counted; of each type the first are listed.
type findings struct {
	listed   []schema.SessionFinding
	counts   map[string]int64
	critical bool
}

func (f *findings) add(finding schema.SessionFinding) {
	f.counts[finding.Type]++
	f.critical = f.critical || finding.Severity == schema.SeverityCritical
	if f.counts[finding.Type] <= maxListed {
		f.listed = append(f.listed, finding)
	}
}

// Unlogged adds the finding that a card of the part commits its agent to a Merkle log (AAP
// section 4.7, tamper_evidence) but that the part's bundle will have no proof of inclusion. Only
// the caller, who seals the bundle, knows this.
func (j *Judge) Unlogged(cardID string) {
	j.found.add(schema.SessionFinding{Type: schema.NoInclusionProof, Severity: schema.SeverityMedium, Field: "audit_commitment.tamper_evidence",
		Description: fmt.Sprintf("card %q commits to tamper evidence by a Merkle log, and bundles are put into none", clip(cardID))})
}

// clip bounds a text for a description.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
