package schema

import (
	"fmt"
	"slices"
	"strings"

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
	d.checkForbidden()
}

// checkDefinitions reports declared values that are neither standard nor defined (AAP section
// 4.4), and values that include themselves: section 6.5 speaks of strict subsumption. Values in
// conflicts_with need no definition: a card cannot define the values of others.
func (d *cardDecoder) checkDefinitions() {
	defined := make(map[string]bool, len(d.card.Values.Definitions))
	for _, def := range d.card.Values.Definitions {
		defined[def.ID] = true
	}
	for i, value := range d.card.Values.Declared {
		if value == "" || defined[value] || slices.Contains(StandardValues, value) {
			continue
		}
		message := fmt.Sprintf("%q is no standard value and has no definition", clip(value))
		if standard := nearName(value, StandardValues); standard != "" {
			message += fmt.Sprintf("; did you mean %q?", standard)
		}
		d.faultAt(fmt.Sprintf("/values/declared/%d", i), "%s", message)
	}
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

// An entry of bounded_actions or forbidden_actions may be a name, "name: description", or
// several names "a, b" at once. Verification accepts the text before a colon as a name as well,
// so an entry has a plain name and may have a short name. Two entries contradict each other
// where the plain name of one equals the plain or short name of the other: "search" and
// "search: the web" do. The tools "fs:read" and "fs:write" do not, though both have the short
// name "fs": neither has it as its plain name.

// actionEntry returns the plain name of an entry and its short name, which is empty where there
// is none.
func actionEntry(entry string) (plain, short string) {
	entry = strings.TrimSpace(entry)
	name, description, cut := strings.Cut(entry, ":")
	name = strings.TrimSpace(name)
	switch {
	case !cut || name == "":
		return entry, ""
	case description == "" || strings.TrimLeft(description, " \t") != description:
		return name, "" // white space sets a description off
	default:
		return entry, name
	}
}

// actionNames maps the plain names, and all names, of a list of actions to their entries.
type actionNames struct {
	plain, all map[string]string
}

func newActionNames(entries []string) actionNames {
	n := actionNames{plain: map[string]string{}, all: map[string]string{}}
	for _, entry := range entries {
		plain, short := actionEntry(entry)
		n.plain[plain], n.all[plain] = entry, entry
		if short != "" {
			n.all[short] = entry
		}
	}
	return n
}

// checkForbidden reports actions that are both bounded and forbidden. The names inside a
// compound entry count as well: "search, delete" contradicts a forbidden "delete", since an
// action of that name does both. An entry that consists of the name alone takes precedence.
func (d *cardDecoder) checkForbidden() {
	entries := d.card.Autonomy.BoundedActions
	if len(d.card.Autonomy.ForbiddenActions) == 0 {
		return
	}
	bounded := newActionNames(entries)
	for _, entry := range entries {
		plain, _ := actionEntry(entry)
		for part := range strings.SplitSeq(plain, ",") {
			if part = strings.TrimSpace(part); bounded.all[part] == "" {
				bounded.all[part] = entry
			}
		}
	}
	for i, action := range d.card.Autonomy.ForbiddenActions {
		plain, short := actionEntry(action)
		entry, both := bounded.all[plain]
		if !both && short != "" {
			entry, both = bounded.plain[short]
		}
		if !both || plain == "" {
			continue
		}
		which := ""
		if action != entry {
			which = fmt.Sprintf(", which has %q", clip(entry))
		}
		d.faultAt(fmt.Sprintf("/%s/forbidden_actions/%d", d.autonomy, i), "%q is one of bounded_actions too%s", clip(action), which)
	}
}
