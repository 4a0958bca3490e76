package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Text renders a card for people (AAP section 4.1): UTF-8 text of many lines, each with a line
// end. Texts of the card that hold control characters are quoted, so a card cannot send
// commands to a terminal. The format cannot be read back.
func (c *Card) Text() string {
	var p page
	p.line("Alignment card %s", plainText(c.CardID))
	p.entry("agent", plainText(c.AgentID))
	p.entry("issued", moment(c.IssuedAt))
	p.entry("expires", moment(c.ExpiresAt))
	p.entry("version", plainText(c.Version))
	p.entry("digest", c.Digest.String())
	p.signature(c)
	p.principal(&c.Principal)
	p.values(&c.Values)
	p.autonomy(&c.Autonomy)
	p.audit(&c.Audit)
	p.extensions(c.Extensions)
	return p.String()
}

// page is the text being written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.Builder, format+"\n", args...) }

// entry writes one named fact; an empty one is left out.
func (p *page) entry(name, text string) {
	if text != "" {
		p.line("  %-14s%s", name, text)
	}
}

// list writes named texts, one a line.
func (p *page) list(name string, texts []string) {
	if len(texts) == 0 {
		p.entry(name, "none")
	}
	for i, text := range texts {
		p.entry([]string{name, ""}[min(i, 1)], plainText(text))
	}
}

func (p *page) heading(format string, args ...any) { p.line("\n"+format, args...) }

func (p *page) signature(c *Card) {
	if c.Signature == nil {
		p.entry("signature", "none: the author cannot be verified")
	} else {
		p.entry("signature", c.Signature.Algorithm+" by key "+plainText(c.Signature.KeyID))
	}
	for i, key := range c.Keys {
		p.entry([]string{"keys", ""}[min(i, 1)], plainText(key.KeyID))
	}
}

// relationships explains each relationship (AAP section 4.3).
var relationships = map[string]string{
	"delegated_authority": "acts within the bounds that the principal sets",
	RelationshipAdvisory:  "recommends, and the principal decides",
	"autonomous":          "acts on its own within its declared values",
}

func (p *page) principal(b *Principal) {
	p.heading("Principal: %s, %s (%s)", b.Type, b.Relationship, relationships[b.Relationship])
	p.entry("identifier", plainText(b.Identifier))
	p.entry("escalate to", plainText(b.EscalationContact))
}

func (p *page) values(b *Values) {
	order := ""
	if b.Hierarchy != "" {
		order = " (conflicts between them: " + b.Hierarchy + ")"
	}
	p.heading("Values%s", order)
	p.list("declared", b.Declared)
	for _, def := range b.Definitions {
		p.line("  %s: %s", plainText(def.ID), plainText(def.Description))
		if def.HasPriority {
			p.entry("  priority", strconv.FormatFloat(def.Priority, 'f', -1, 64))
		}
		if len(def.Subsumes) > 0 {
			p.list("  subsumes", def.Subsumes)
		}
	}
	if len(b.ConflictsWith) > 0 {
		p.list("refuses", b.ConflictsWith)
	}
}

func (p *page) autonomy(b *Autonomy) {
	p.heading("Autonomy")
	p.list("on its own", b.BoundedActions)
	p.list("never", b.ForbiddenActions)
	if m := b.MaxAutonomousValue; m.Present {
		p.entry("up to", strings.TrimSpace(m.Digits+" "+plainText(m.Currency)))
	}
	for _, t := range b.EscalationTriggers {
		p.line("  %-14s%s", t.Action, "when "+plainText(t.Condition))
		p.entry("", plainText(t.Reason))
	}
}

func (p *page) audit(b *Audit) {
	p.heading("Audit")
	p.entry("traces", strings.TrimSpace(plainText(b.TraceFormat)+fmt.Sprintf(" kept %d days", b.RetentionDays)))
	p.entry("stored", strings.TrimSpace(b.StorageType+" "+plainText(b.StorageLocation)))
	if b.Queryable {
		p.entry("query at", plainText(b.QueryEndpoint))
	} else {
		p.entry("query at", "nowhere: the traces cannot be queried from outside")
	}
	p.entry("evidence", b.TamperEvidence)
}

func (p *page) extensions(all Members) {
	if len(all) == 0 {
		return
	}
	p.heading("Extensions")
	for _, extension := range all {
		p.entry(plainText(extension.Name), plainText(string(extension.Value)))
	}
}

// moment writes a time, or says that there is none.
func moment(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Format(time.RFC3339Nano)
}

// plainText returns s where all of it is printable, and s quoted otherwise.
func plainText(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(s)
	}
	return s
}
