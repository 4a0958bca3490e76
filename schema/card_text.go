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
	if c.Signature == nil {
		p.entry("signature", "none: the author cannot be verified")
	} else {
		p.entry("signature", c.Signature.Algorithm+" by key "+plainText(c.Signature.KeyID))
	}
	for i, key := range c.Keys {
		p.entry([]string{"keys", ""}[min(i, 1)], plainText(key.KeyID))
	}

	principal := &c.Principal
	p.line("\nPrincipal: %s, %s (%s)", principal.Type, principal.Relationship, relationships[principal.Relationship])
	p.entry("identifier", plainText(principal.Identifier))
	p.entry("escalate to", plainText(principal.EscalationContact))

	values, order := &c.Values, ""
	if values.Hierarchy != "" {
		order = " (conflicts between them: " + values.Hierarchy + ")"
	}
	p.line("\nValues%s", order)
	p.list("declared", values.Declared)
	for _, def := range values.Definitions {
		p.line("  %s: %s", plainText(def.ID), plainText(def.Description))
		if def.HasPriority {
			p.entry("  priority", strconv.FormatFloat(def.Priority, 'f', -1, 64))
		}
		if len(def.Subsumes) > 0 {
			p.list("  subsumes", def.Subsumes)
		}
	}
	if len(values.ConflictsWith) > 0 {
		p.list("refuses", values.ConflictsWith)
	}

	p.line("\nAutonomy")
	p.list("on its own", c.Autonomy.BoundedActions)
	p.list("never", c.Autonomy.ForbiddenActions)
	if m := c.Autonomy.MaxAutonomousValue; m.Present {
		p.entry("up to", strings.TrimSpace(m.Digits+" "+plainText(m.Currency)))
	}
	for _, t := range c.Autonomy.EscalationTriggers {
		p.line("  %-14s%s", t.Action, "when "+plainText(t.Condition))
		p.entry("", plainText(t.Reason))
	}

	audit, queries := &c.Audit, "nowhere: the traces cannot be queried from outside"
	if audit.Queryable {
		queries = plainText(audit.QueryEndpoint)
	}
	p.line("\nAudit")
	p.entry("traces", strings.TrimSpace(plainText(audit.TraceFormat)+fmt.Sprintf(" kept %d days", audit.RetentionDays)))
	p.entry("stored", strings.TrimSpace(audit.StorageType+" "+plainText(audit.StorageLocation)))
	p.entry("query at", queries)
	p.entry("evidence", audit.TamperEvidence)

	if len(c.Extensions) > 0 {
		p.line("\nExtensions")
	}
	for _, extension := range c.Extensions {
		p.entry(plainText(extension.Name), plainText(string(extension.Value)))
	}
	return p.String()
}

// relationships explains each relationship (AAP section 4.3).
var relationships = map[string]string{
	"delegated_authority": "acts within the bounds that the principal sets",
	RelationshipAdvisory:  "recommends, and the principal decides",
	"autonomous":          "acts on its own within its declared values",
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
