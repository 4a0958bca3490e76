package schema

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of a card, in addition to the limits of every record.
const (
	MaxTriggers      = 500    // escalation triggers; each is evaluated for every trace
	MaxRetentionDays = 36_500 // a hundred years
)

// StandardValues are the value identifiers of AAP section 4.4. A card need not define them.
var StandardValues = []string{
	"principal_benefit", "transparency", "minimal_data", "harm_prevention",
	"honesty", "user_control", "privacy", "fairness",
}

// validate checks the rules that hold between members. It also runs where single members have
// faults, so all faults are reported at once.
func (d *cardDecoder) validate() {
	if d.err != nil {
		return
	}
	c := d.card
	if !c.ExpiresAt.IsZero() && !c.IssuedAt.IsZero() && !c.ExpiresAt.After(c.IssuedAt) {
		d.faultAt("/expires_at", "is not after issued_at")
	}
	if c.Audit.Queryable && c.Audit.QueryEndpoint == "" {
		d.faultAt("/"+d.audit+"/query_endpoint", "is required of a card whose traces are queryable")
	}
	if c.Shape == ShapeUnified && c.Principal.Type != "unspecified" && c.Principal.Identifier == "" {
		d.faultAt("/principal/identifier", "is required unless the principal's type is unspecified")
	}
	d.checkDefinitions()
	d.checkSubsumption()
	d.checkForbidden()
}

// checkDefinitions reports declared values that are neither standard nor defined (AAP section
// 4.4). Values in conflicts_with need no definition: a card cannot define the values of others.
func (d *cardDecoder) checkDefinitions() {
	known := set(StandardValues)
	for _, def := range d.card.Values.Definitions {
		known[def.ID] = true
	}
	for i, value := range d.card.Values.Declared {
		if value == "" || known[value] {
			continue
		}
		message := fmt.Sprintf("%q is no standard value and has no definition", clip(value))
		if standard, near := nearStandardValue(value); near {
			message += fmt.Sprintf(": is %q meant?", standard)
		}
		d.faultAt(fmt.Sprintf("/values/declared/%d", i), "%s", message)
	}
}

// checkSubsumption reports values that include themselves: AAP section 6.5 speaks of strict
// subsumption.
func (d *cardDecoder) checkSubsumption() {
	for _, def := range d.card.Values.Definitions {
		if slices.Contains(def.Subsumes, def.ID) {
			d.faultAt(pointer("values", "definitions", def.ID, "subsumes"), "%q cannot subsume itself", clip(def.ID))
		}
	}
}

// pointer joins names to a JSON pointer (RFC 6901).
func pointer(names ...string) string {
	var p jsontext.Pointer
	for _, name := range names {
		p = p.AppendToken(name)
	}
	return string(p)
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
