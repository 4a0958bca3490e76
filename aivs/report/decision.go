package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/schema"
)

// decision is one row of the log with its trace and the verdict on it.
type decision struct {
	row     *aivs.Row
	trace   *schema.Trace // nil if the bundle has none, or one that cannot be read
	verdict *verdict      // nil if there is none
	unread  string        // why there is no trace or no verdict, if it is not that the bundle has none
	id      string        // of the agent's record; empty if there is none
	differs string        // the field of the row that says something else than the record; empty: none does

	unprotected []string // of inputs, outputs and errors: what the signature does not cover
}

// verdict is a line of verdicts.jsonl.
type verdict struct {
	TraceID    string               `json:"trace_id"`
	Verified   bool                 `json:"verified"`
	Status     schema.VerdictStatus `json:"status"`
	Action     string               `json:"recommended_action"`
	Violations []finding            `json:"violations"`
	Findings   []finding            `json:"findings"`
	Warnings   []finding            `json:"warnings"`
}

// finding is a violation, a finding or a warning, of a trace or of the session.
type finding struct {
	Type        string          `json:"type"`
	Severity    schema.Severity `json:"severity"`
	Description string          `json:"description"`
	TraceID     string          `json:"trace_id"`
}

// decisions returns the decisions of a bundle in their order.
func decisions(report *aivs.Report, c *Contents) []decision {
	found := make([]decision, len(c.rows))
	var unprotected []string
	for _, what := range []string{aivs.CoversInputs, aivs.CoversOutputs, aivs.CoversErrors} {
		if report.Signature == aivs.SignatureValid && !slices.Contains(report.Covered, what) {
			unprotected = append(unprotected, what)
		}
	}
	for i := range c.rows {
		found[i].row, found[i].unprotected = &c.rows[i], unprotected
	}
	if report.Opening == nil {
		return found
	}
	next := 0
	for line := range bytes.Lines(c.of(aivs.TracesMember)) {
		if len(found) == next {
			break
		}
		found[next].read(bytes.TrimSuffix(line, []byte("\n")))
		next++
	}
	if c.kept[ofTraces].cut {
		for i := max(next-1, 0); i < len(found); i++ { // the last one may be cut
			found[i].unread = "The agent's record is in the file, which is too large to show all of it."
			found[i].differs = ""
		}
	}
	verdicts, whole := verdictsOf(c.of(aivs.VerdictsMember)), !c.kept[ofVerdicts].cut
	for i := range found {
		d := &found[i]
		id := d.traceID()
		if left := verdicts[id]; len(left) > 0 { // two records with one id have their verdicts in the records' order
			d.verdict, verdicts[id] = left[0], left[1:]
		} else if !whole {
			d.unread = "Its verdict may be in the file, which is too large to show all of it."
		}
	}
	return found
}

// read reads the record of a decision: the line of traces.jsonl at the place of its row. The verifier
// has checked that the row states the SHA-256 of this line, and not that they say the same.
func (d *decision) read(line []byte) {
	d.differs = difference(d.row, line)
	var err error
	if d.trace, err = schema.Admit("", line); err == nil {
		d.id = d.trace.TraceID
		return
	}
	d.unread = "This version of Plumbline cannot read the agent's record. It is in the file."
	var in struct {
		TraceID string `json:"trace_id"`
	}
	if json.Unmarshal(line, &in) == nil {
		d.id = in.TraceID
	}
}

// verdictsOf returns the verdicts on each trace, in their order.
func verdictsOf(lines []byte) map[string][]*verdict {
	all := map[string][]*verdict{}
	for line := range bytes.Lines(lines) {
		v := new(verdict)
		if json.Unmarshal(line, v) == nil {
			all[v.TraceID] = append(all[v.TraceID], v)
		}
	}
	return all
}

// traceID returns the id of the record. Only without a record it returns the one that the row states.
func (d *decision) traceID() string {
	if d.id != "" {
		return d.id
	}
	var in struct {
		TraceID string `json:"trace_id"`
	}
	if json.Unmarshal([]byte(d.row.InputsJSON), &in) != nil {
		return ""
	}
	return in.TraceID
}

// judged reports whether there is a verdict that judged the decision.
func (d *decision) judged() bool { return d.verdict != nil && d.verdict.Status == schema.StatusJudged }

// gravity orders decisions by what was found about them: 0 for nothing. A row that contradicts its
// record comes first.
func (d *decision) gravity() int {
	if d.differs != "" {
		return 5
	}
	if d.verdict == nil {
		return 0
	}
	worst := 0
	for _, f := range slices.Concat(d.verdict.Violations, d.verdict.Findings) {
		worst = max(worst, rank(f.Severity))
	}
	return worst
}

func rank(s schema.Severity) int {
	switch s {
	case schema.SeverityCritical:
		return 4
	case schema.SeverityHigh:
		return 3
	case schema.SeverityMedium:
		return 2
	}
	return 1
}

// chosen returns which decisions the page shows in full: all of them if there are no more than most,
// otherwise the gravest, up to three quarters of most, and then the first ones.
func chosen(all []decision, most int) []bool {
	full := make([]bool, len(all))
	order := make([]int, 0, len(all))
	for i := range all {
		if all[i].gravity() > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].gravity(), all[a].gravity()) })
	if grave := most - most/4; len(all) > most && len(order) > grave {
		order = order[:grave]
	}
	left := most
	for _, i := range order {
		full[i] = true
		left--
	}
	for i := 0; i < len(all) && left > 0; i++ {
		if !full[i] {
			full[i] = true
			left--
		}
	}
	return full
}

// entry is a decision on the page, or a run of decisions that are not shown in full.
type entry struct {
	Gap *gap // of a run: what it contains

	Row          int64
	Time         string
	Does         string // "The agent did", …
	Name         string
	Spelt        string // the name with codes; empty if it is shown like this
	CardID       string // only if the bundle has several cards
	Category     string
	Target       string
	Parameters   string
	Alternatives []alternative
	Omitted      string // alternatives that are not shown
	Reasoning    string
	Values       []string
	Confidence   string
	Escalation   []fact
	Execution    []fact
	Unread       string // what of it is not shown, and why
	Contradicted string // that the row says something else than the record
	Verdict      string
	Remarks      []remark
	TraceID      string
}

type alternative struct {
	ID, Description, Score string
	Flags                  []string
	Chosen                 bool
}

// gap is a run of decisions that are not shown in full.
type gap struct {
	Which, Size string
	Actions     []tallied
	Problems    []tallied
	Unjudged    string // how many were not judged; empty for none

	Contradicted string // how many rows say something else than their records; empty for none
}

// fact is a name and a value; Quote marks a value that is quoted from the bundle. Note is not quoted.
type fact struct {
	Name, Value string
	Quote       bool
	Spelt       string // the value with codes; empty if it is shown like this
	Note        string
	Counts      []tallied // instead of a value
}

// quoted returns a fact whose value is from the bundle.
func quoted(name, value string) fact { return fact{Name: name, Value: value, Quote: true} }

// remark is a violation, a finding or a warning in plain words.
type remark struct {
	Kind        string // violation, finding, warning
	Severity    string
	Words       string
	Code        string // the specification's name
	Description string
	TraceID     string // of a finding of the session
}

// entries returns the decisions as the page shows them.
func entries(all []decision, most int) (shown []entry) {
	full := chosen(all, most)
	for from := 0; from < len(all); {
		to := from + 1
		if full[from] {
			shown = append(shown, all[from].entry())
		} else {
			for to < len(all) && !full[to] {
				to++
			}
			shown = append(shown, entry{Gap: summary(all[from:to])})
		}
		from = to
	}
	return shown
}

// summary says what a run of decisions contains that the page does not show.
func summary(run []decision) *gap {
	names, problems, unjudged, contradicted := map[string]int64{}, map[string]int64{}, int64(0), int64(0)
	for i := range run {
		if run[i].differs != "" {
			contradicted++
		}
		names[short(run[i].name())]++
		if !run[i].judged() {
			unjudged++
		}
		if v := run[i].verdict; v != nil {
			for _, f := range slices.Concat(v.Violations, v.Findings) {
				problems[short(f.Type)]++
			}
		}
	}
	g := &gap{Which: fmt.Sprintf("Row %d is", run[0].row.ID), Size: counted(int64(len(run)), "decision"), Actions: tally(names), Problems: tally(problems)}
	if len(run) > 1 {
		g.Which = fmt.Sprintf("Rows %d to %d are", run[0].row.ID, run[len(run)-1].row.ID)
	}
	if unjudged > 0 {
		g.Unjudged = counted(unjudged, "decision")
	}
	if contradicted > 0 {
		g.Contradicted = counted(contradicted, "row")
	}
	return g
}

// tallied is a name from the bundle with a count, or how many other names there are.
type tallied struct {
	Name  string
	Count int64
	Other bool
}

// tally returns counts by name, the most frequent first, at most ten of them.
func tally(counts map[string]int64) (all []tallied) {
	for name, n := range counts {
		all = append(all, tallied{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b tallied) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	if others := len(all) - 10; others > 0 {
		all = append(all[:10:10], tallied{Count: int64(others), Other: true})
	}
	return all
}

func (d *decision) name() string {
	if d.trace != nil {
		return d.trace.Action.Name
	}
	return decoded(d.row.ToolName)
}

// decoded reverses aivs.Encode.
func decoded(hashed string) string {
	return strings.NewReplacer("%3A", ":", "%25", "%").Replace(hashed)
}

// entry returns one decision in full.
func (d *decision) entry() entry {
	e := entry{Row: d.row.ID, Time: seconds(d.row.Timestamp), Does: "The log records", Name: short(d.name()), Spelt: spelt(d.name()), Execution: d.execution()}
	if t := d.trace; t != nil {
		e.CardID = short(t.CardID)
		e.Does, e.Category, e.TraceID = actionWords[t.Action.Type], categoryWords[t.Action.Category], short(t.TraceID)
		if t.Action.Target.Identifier != "" || t.Action.Target.Type != "" {
			e.Target = short(strings.TrimSpace(t.Action.Target.Type + " " + t.Action.Target.Identifier))
		}
		e.alternatives(&t.Decision)
		e.Reasoning, e.Values = long(t.Decision.Reasoning), shorts(t.Decision.ValuesApplied)
		if t.Decision.HasConfidence {
			e.Confidence = strconv.FormatFloat(t.Decision.Confidence, 'f', -1, 64)
		}
		e.Escalation = escalation(&t.Escalation)
	}
	if d.differs != "" {
		e.Contradicted = "CONTRADICTION: the row's " + d.differs + " says something else than the agent's record. Both were sealed like this."
	}
	e.judge(d)
	return e
}

func (e *entry) alternatives(decided *schema.Decision) {
	const most = 20
	for i := range decided.Alternatives {
		a := &decided.Alternatives[i]
		selected := a.OptionID == decided.Selected
		if len(e.Alternatives) >= most && !selected {
			continue
		}
		one := alternative{ID: short(a.OptionID), Description: long(a.Description), Flags: shorts(a.Flags), Chosen: selected}
		if a.HasScore {
			one.Score = strconv.FormatFloat(a.Score, 'f', -1, 64)
		}
		e.Alternatives = append(e.Alternatives, one)
	}
	if more := len(decided.Alternatives) - len(e.Alternatives); more > 0 {
		e.Omitted = counted(int64(more), "more option") + " in the bundle."
	}
}

// escalation returns the agent's question to its principal, and the answer.
func escalation(e *schema.Escalation) (facts []fact) {
	if !e.Present {
		return nil
	}
	required := "not required, according to the agent"
	if e.Required {
		required = "required, according to the agent"
	}
	facts = append(facts, fact{Name: "Asking the principal first", Value: required})
	if e.Reason != "" {
		facts = append(facts, quoted("Reason", long(e.Reason)))
	}
	if e.EscalationID != "" {
		facts = append(facts, quoted("Number of the question", short(e.EscalationID)))
	}
	if e.Status != "" {
		facts = append(facts, fact{Name: "Answer", Value: answerWords[e.Status] + ", as the agent reports it"})
	}
	if e.Response.Decision != "" {
		text := short(e.Response.Decision)
		if !e.Response.Timestamp.IsZero() {
			text += ", " + instant(e.Response.Timestamp)
		}
		facts = append(facts, quoted("The principal's decision, as the agent reports it", text))
	}
	if len(e.Response.Conditions) > 0 {
		facts = append(facts, quoted("Under the conditions, as the agent reports them", strings.Join(shorts(e.Response.Conditions), "\n")))
	}
	return facts
}

// execution returns what the row says about the tool and its results.
func (d *decision) execution() (facts []fact) {
	add := func(name, text, covered string) {
		f := quoted(name, text)
		if slices.Contains(d.unprotected, covered) {
			f.Note = "The signature does not cover this: anyone can have changed it."
		}
		if text != "" {
			facts = append(facts, f)
		}
	}
	inputs := []byte(d.row.InputsJSON)
	if d.trace != nil {
		var in struct {
			Inputs jsontext.Value `json:"inputs"`
		}
		if json.Unmarshal(inputs, &in) == nil {
			inputs = in.Inputs
		}
		if d.trace.Context.Execution.Present {
			add("Tool", short(decoded(d.row.ToolName)), aivs.CoversRows)
		}
	}
	add("Inputs", value(inputs), aivs.CoversInputs)
	add("Outputs", value([]byte(d.row.OutputsJSON)), aivs.CoversOutputs)
	add("Error", long(d.row.Error), aivs.CoversErrors)
	if d.row.CostCents > 0 {
		facts = append(facts, fact{Name: "Cost", Value: counted(d.row.CostCents, "cent")})
	}
	return facts
}

// judge adds the verdict on the decision.
func (e *entry) judge(d *decision) {
	v := d.verdict
	switch {
	case v == nil && d.unread != "":
		e.Verdict = d.unread
		return
	case v == nil && d.trace == nil:
		return
	case v == nil:
		e.Verdict = "The bundle has no verdict on this decision."
		return
	case v.Status == schema.StatusCardUnknown:
		e.Verdict = "Not judged: nobody had registered the card that the agent names."
	case v.Status != schema.StatusJudged:
		e.Verdict = "This version of Plumbline cannot read the verdict. It is in the file."
	case len(v.Violations)+len(v.Findings) == 0:
		e.Verdict = "No violation and no finding."
	default:
		e.Verdict = counted(int64(len(v.Violations)), "violation") + ", " + counted(int64(len(v.Findings)), "finding") + "."
	}
	e.Unread = d.unread
	e.Remarks = slices.Concat(remarks("violation", v.Violations), remarks("finding", v.Findings), remarks("warning", v.Warnings))
}

// remarks returns violations, findings or warnings in plain words.
func remarks(kind string, found []finding) (all []remark) {
	const most = 50
	for i, f := range found {
		if i == most {
			return append(all, remark{Kind: kind, Words: fmt.Sprintf("%d more in the bundle.", len(found)-i)})
		}
		words := remarkWords[f.Type]
		if words == "" {
			words = "A remark of a kind that this version does not know."
		}
		all = append(all, remark{Kind: kind, Severity: severityWords[f.Severity], Words: words, Code: short(f.Type), Description: long(f.Description), TraceID: short(f.TraceID)})
	}
	return all
}
