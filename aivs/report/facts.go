package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/schema"
)

// cardView is a card of the bundle: what the agent declared about itself.
type cardView struct {
	ID        string
	Principal string
	Contact   string
	Period    string
	May       []string
	Must      []string // ask first
	MustNot   []string
	Values    []string
	Unread    string // why the card cannot be shown; the others are empty then
}

func cards(c *Contents) (all []cardView) {
	const most = 20
	for _, f := range c.files {
		if !strings.HasPrefix(f.name, cardFolder) {
			continue
		}
		if len(all) == most {
			return append(all, cardView{ID: "more cards", Unread: "The bundle has more cards than the page shows."})
		}
		card, err := schema.DecodeCard(f.data)
		if err != nil {
			all = append(all, cardView{ID: short(f.name), Unread: "This version of Plumbline cannot read the card."})
			continue
		}
		all = append(all, viewOf(card))
	}
	return all
}

func viewOf(card *schema.Card) cardView {
	p := &card.Principal
	v := cardView{ID: short(card.CardID), Contact: short(p.EscalationContact), Period: "from " + instant(card.IssuedAt) + ", without an end",
		May: shorts(card.Autonomy.BoundedActions), MustNot: shorts(card.Autonomy.ForbiddenActions), Values: shorts(card.Values.Declared)}
	if !card.ExpiresAt.IsZero() {
		v.Period = "from " + instant(card.IssuedAt) + " to " + instant(card.ExpiresAt)
	}
	var conditions []string
	for _, t := range card.Autonomy.EscalationTriggers {
		if t.Action == schema.TriggerLog {
			continue
		}
		conditions = append(conditions, fmt.Sprintf("%s (%s)", t.Condition, t.Action))
	}
	v.Must = shorts(conditions)
	var parts []string
	for _, part := range []string{short(p.Identifier), wordOr(principalWords, p.Type), wordOr(relationshipWords, p.Relationship)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	v.Principal = strings.Join(parts, ", ")
	return v
}

func wordOr(words map[string]string, text string) string {
	if word, known := words[text]; known {
		return word
	}
	return short(text)
}

// who returns the agent, its principal and the operator's key.
func (p *Page) who(cards []cardView) (facts []fact) {
	r := p.Report
	if r.Opening != nil {
		facts = append(facts, fact{"Agent", short(r.Opening.AgentID), true})
	}
	var principals []string
	for _, c := range cards {
		if c.Principal != "" && !slices.Contains(principals, c.Principal) {
			principals = append(principals, c.Principal)
		}
	}
	if len(principals) > 0 {
		facts = append(facts, fact{"Principal, as the agent's card declares", strings.Join(principals, "\n"), true})
	}
	facts = append(facts, fact{"Session", short(r.SessionID), true})
	if o := r.Opening; o != nil {
		facts = append(facts, fact{Name: "Part of the session", Value: partWords(o)})
	}
	switch {
	case r.Signature != aivs.SignatureValid:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "nobody: the file is not signed"})
	case r.KeyPinned:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "the holder of the key " + r.PublicKey + ", which is a key that was given to this check, or one that such a key leads to"})
	default:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "the holder of the key " + r.PublicKey + "; whose key that is was NOT checked"})
	}
	if o := r.Opening; o != nil && o.Generator != "" {
		facts = append(facts, fact{"Made with", short(o.Generator), true})
	}
	return facts
}

func partWords(o *aivs.Opening) string {
	switch {
	case o.LastPart && o.Part == 1:
		return "all of it"
	case o.LastPart:
		return fmt.Sprintf("part %d, the last one", o.Part)
	}
	return fmt.Sprintf("part %d; more may follow", o.Part)
}

// when returns the times of the session, of its sealing and of its time stamps.
func (p *Page) when(all []decision) (facts []fact) {
	r := p.Report
	if len(all) > 0 {
		first, last := all[0].row.Timestamp, all[0].row.Timestamp
		for i := range all {
			first, last = min(first, all[i].row.Timestamp), max(last, all[i].row.Timestamp)
		}
		facts = append(facts, fact{Name: "First decision, by the agent's clock", Value: seconds(first)}, fact{Name: "Last decision, by the agent's clock", Value: seconds(last)})
	}
	if !r.ExportedAt.IsZero() {
		facts = append(facts, fact{Name: "Sealed, by the operator's clock", Value: instant(r.ExportedAt)})
	} else if r.Opening != nil {
		facts = append(facts, fact{Name: "Sealed, by the operator's clock", Value: short(r.Opening.ExportedAt)})
	}
	for _, a := range r.Anchors {
		facts = append(facts, fact{"Confirmed by " + short(a.File), short(a.Says), true})
	}
	if len(r.Anchors) == 0 {
		facts = append(facts, fact{Name: "Confirmed by somebody else", Value: "no: no time stamp and no transparency log was checked"})
	}
	return facts
}

// sessionView is the verdict on the session.
type sessionView struct {
	Word, Words string
	Counts      []fact
	Remarks     []remark
	Unlisted    string
	Unchecked   []string
}

// session returns the verdict on the session, nil if the bundle has none.
func session(r *aivs.Report, c *Contents) *sessionView {
	if r.Verdict == nil {
		return nil
	}
	var s struct {
		Findings []finding `json:"findings"`
		Traces   struct {
			Verified   int64            `json:"verified"`
			Unknown    int64            `json:"card_unknown"`
			Violations map[string]int64 `json:"violations"`
			Findings   map[string]int64 `json:"findings"`
		} `json:"traces"`
		Counts   map[string]int64 `json:"finding_counts"`
		Metadata struct {
			Unchecked []string `json:"unchecked"`
		} `json:"verification_metadata"`
	}
	v := &sessionView{Word: strings.ToUpper(string(r.Verdict.RecommendedAction)), Words: recommendationWords[r.Verdict.RecommendedAction]}
	if json.Unmarshal(c.of(aivs.SessionMember), &s) != nil { // the verifier read less of it
		v.Counts = []fact{{Name: "Violations", Value: fmt.Sprint(r.Verdict.Violations)}, {Name: "Findings", Value: fmt.Sprint(r.Verdict.Findings)}}
		return v
	}
	v.Counts = []fact{
		{Name: "Decisions", Value: fmt.Sprint(r.Verdict.Traces)},
		{Name: "of which without a violation", Value: fmt.Sprint(s.Traces.Verified)},
		{Name: "of which not judged, because the card was unknown", Value: fmt.Sprint(s.Traces.Unknown)},
		{Name: "Violations", Value: countsOf(s.Traces.Violations)},
		{Name: "Findings on single decisions", Value: countsOf(s.Traces.Findings)},
		{Name: "Findings on the session as a whole", Value: countsOf(s.Counts)},
	}
	v.Remarks = remarks("finding", s.Findings)
	for i := range s.Findings[:min(len(s.Findings), len(v.Remarks))] {
		if id := s.Findings[i].TraceID; id != "" && v.Remarks[i].Code != "" {
			v.Remarks[i].Description += " (trace " + short(id) + ")"
		}
	}
	v.Unchecked = shorts(s.Metadata.Unchecked)
	return v
}

func countsOf(counts map[string]int64) string {
	if len(counts) == 0 {
		return "none"
	}
	shown := map[string]int64{}
	for kind, n := range counts {
		shown[short(kind)] += n
	}
	return tally(shown)
}
