package schema

import (
	"fmt"
	"strings"
)

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

// contradicts returns the entry of n that forbidden contradicts.
func (n actionNames) contradicts(forbidden string) (entry string, found bool) {
	plain, short := actionEntry(forbidden)
	if plain == "" {
		return "", false
	}
	if entry, found = n.all[plain]; !found && short != "" {
		entry, found = n.plain[short]
	}
	return entry, found
}

// parts adds the names inside compound entries: "search, delete" contradicts a forbidden
// "delete", since an action of that name does both. An entry that consists of the name alone
// takes precedence.
func (n actionNames) parts(entries []string) {
	for _, entry := range entries {
		plain, _ := actionEntry(entry)
		for part := range strings.SplitSeq(plain, ",") {
			if part = strings.TrimSpace(part); n.all[part] == "" {
				n.all[part] = entry
			}
		}
	}
}

// checkForbidden reports actions that are both bounded and forbidden.
func (d *cardDecoder) checkForbidden() {
	bounded := newActionNames(d.card.Autonomy.BoundedActions)
	bounded.parts(d.card.Autonomy.BoundedActions)
	for i, action := range d.card.Autonomy.ForbiddenActions {
		if entry, both := bounded.contradicts(action); both {
			d.faultAt(fmt.Sprintf("/%s/forbidden_actions/%d", d.autonomy, i), "%s", overlap(action, entry))
		}
	}
}

func overlap(forbidden, bounded string) string {
	if forbidden == bounded {
		return fmt.Sprintf("%q is one of bounded_actions too", clip(forbidden))
	}
	return fmt.Sprintf("%q is one of bounded_actions too, which has %q", clip(forbidden), clip(bounded))
}
