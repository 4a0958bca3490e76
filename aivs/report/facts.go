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
	Agent     string // whose card it is, if it is not that of the session's agent
	Principal fact
	Contact   string
	Period    string
	May       []string
	Must      []string // ask first
	MustNot   []string
	Values    []string
	Unread    string // why the card cannot be shown; the others are empty then
}

// cards returns the cards in a bundle of an agent.
func cards(c *Contents, agent string) (all []cardView) {
	const most = 20
	for _, f := range c.files {
		if !strings.HasPrefix(f.name, cardFolder) {
			continue
		}
		if len(all) == most {
			return append(all, cardView{ID: "more cards", Unread: "The bundle has more cards than the page shows."})
		}
		card, err := schema.DecodeCard(f.data)
		switch {
		case err != nil && f.kept.cut:
			all = append(all, cardView{ID: short(f.name), Unread: "The card is in the file, which is too large to show all of it."})
			continue
		case err != nil:
			all = append(all, cardView{ID: short(f.name), Unread: "This version of Plumbline cannot read the card."})
			continue
		}
		view := viewOf(card)
		if card.AgentID != agent {
			view.Agent = short(card.AgentID)
		}
		all = append(all, view)
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
	v.Principal = principal(p)
	return v
}

// principal returns the principal that a card declares. Words that the page does not know are quoted.
func principal(p *schema.Principal) fact {
	f := quoted("Principal, as the agent's card declares", short(p.Identifier))
	var known []string
	for _, part := range []struct {
		words map[string]string
		text  string
	}{{principalWords, p.Type}, {relationshipWords, p.Relationship}} {
		if word := part.words[part.text]; word != "" {
			known = append(known, word)
		} else if part.text != "" {
			f.Value = strings.TrimSpace(f.Value + " (" + short(part.text) + ")")
		}
	}
	f.Note = strings.Join(known, "; ")
	return f
}

// who returns the agent, its principal and the operator's key.
func (p *Page) who(cards []cardView) (facts []fact) {
	r := p.Report
	named := func(name, value string) {
		facts = append(facts, fact{Name: name, Value: short(value), Quote: true, Spelt: spelt(value)})
	}
	if r.Opening != nil {
		named("Agent", r.Opening.AgentID)
	}
	for _, c := range cards {
		known := slices.ContainsFunc(facts, func(f fact) bool { return f.Value == c.Principal.Value && f.Note == c.Principal.Note })
		if c.Unread == "" && c.Agent == "" && !known && c.Principal.Value+c.Principal.Note != "" {
			facts = append(facts, c.Principal)
		}
	}
	named("Session", r.SessionID)
	if o := r.Opening; o != nil {
		facts = append(facts, fact{Name: "Part of the session, as the operator states", Value: partWords(o)})
	}
	switch {
	case r.Signature != aivs.SignatureValid:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "nobody: the file is not signed"})
	case r.KeyPinned:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "the holder of the key " + r.PublicKey + ". Whoever made this page expected this key, or one that leads to it: compare it with the operator's key that you know"})
	default:
		facts = append(facts, fact{Name: "Sealed and signed by", Value: "the holder of the key " + r.PublicKey + "; whose key that is was NOT checked"})
	}
	if o := r.Opening; o != nil && o.Generator != "" {
		facts = append(facts, quoted("Made with", short(o.Generator)))
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
	if p.total() > 0 {
		facts = append(facts, fact{Name: "First decision, by the agent's clock", Value: seconds(p.Contents.first)}, fact{Name: "Last decision, by the agent's clock", Value: seconds(p.Contents.last)})
	}
	switch {
	case r.ExportedAt.IsZero() && r.Opening != nil:
		facts = append(facts, quoted("Sealed, by the operator's clock", short(r.Opening.ExportedAt)))
	case r.ExportedAt.IsZero():
	case r.CoversAll():
		facts = append(facts, fact{Name: "Sealed, by the operator's clock", Value: instant(r.ExportedAt)})
	default:
		facts = append(facts, fact{Name: "Made, as the file says", Value: instant(r.ExportedAt), Note: "The signature does not cover this: anyone can have changed it."})
	}
	for _, a := range r.Anchors {
		facts = append(facts, fact{Name: "Confirmed by the file", Value: short(a.File), Quote: true, Note: short(a.Says)})
	}
	if len(r.Anchors) == 0 {
		facts = append(facts, fact{Name: "Confirmed by a time stamp or a transparency log", Value: "no: none was checked"})
	}
	return facts
}

// sessionView is the verdict on the session.
type sessionView struct {
	Word, Words string
	Counts      []fact
	Remarks     []remark
	Unlisted    string // how many findings are only counted; empty for none
	Unchecked   []string

	whole bool  // all of it could be read
	gaps  int64 // how many gaps in the numbers it counts, if it could be read
}

// unlisted says how many findings the verdict on the session counts and does not list.
func unlisted(counts map[string]int64, listed int) string {
	n := int64(-listed)
	for _, count := range counts {
		n += count
	}
	if n <= 0 {
		return ""
	}
	return "The verdict counts " + counted(n, "more finding") + " on the session than the file lists."
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
		countsOf("Violations", s.Traces.Violations),
		countsOf("Findings on single decisions", s.Traces.Findings),
		countsOf("Findings on the session as a whole", s.Counts),
	}
	v.gaps, v.whole = s.Counts[schema.TraceGap], true
	v.Remarks, v.Unlisted = remarks("finding", s.Findings), unlisted(s.Counts, len(s.Findings))
	v.Unchecked = shorts(s.Metadata.Unchecked)
	return v
}

func countsOf(name string, counts map[string]int64) fact {
	shown := map[string]int64{}
	for kind, n := range counts {
		shown[short(kind)] += n
	}
	if len(shown) == 0 {
		return fact{Name: name, Value: "none"}
	}
	return fact{Name: name, Counts: tally(shown)}
}
