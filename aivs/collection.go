package aivs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// Located is a verified bundle and its path.
type Located struct {
	Path   string
	Report *Report
}

// Collection is the result of comparing the bundles of one place with each other (draft section
// 5.4, and the parts of our own dialect).
type Collection struct {
	Sessions int      `json:"sessions"` // of our own dialect
	Faults   []Fault  `json:"faults"`   // Where is a path or a session
	Open     []string `json:"open"`     // sessions whose last part is not here, or does not exist yet
	Late     []string `json:"late"`     // parts after a part that is marked as the last: traces that arrived late, or that were added
}

// CheckCollection compares bundles that were each verified on their own. A session must have its
// parts from 1 on, each once, each linked to the part before by its digest and not exported
// before it. A part after the last one is not a fault, but is noted in Late. Bundles of other
// dialects have no parts: the previous bundle that each names must be present, and each bundle of
// a signer's session has one successor at most.
func CheckCollection(bundles []Located) *Collection {
	c := &Collection{Faults: []Fault{}, Open: []string{}, Late: []string{}}
	var own, foreign []Located
	for _, b := range bundles {
		if b.Report.Opening != nil {
			own = append(own, b)
		} else {
			foreign = append(foreign, b)
		}
	}
	c.foreign(foreign)
	slices.SortStableFunc(own, func(a, b Located) int {
		x, y := a.Report.Opening, b.Report.Opening
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.SessionID, y.SessionID), cmp.Compare(x.Part, y.Part), cmp.Compare(a.Path, b.Path))
	})
	for from := 0; from < len(own); {
		to, first := from+1, own[from].Report.Opening
		for to < len(own) && own[to].Report.Opening.AgentID == first.AgentID && own[to].Report.Opening.SessionID == first.SessionID {
			to++
		}
		c.session(own[from:to])
		from = to
	}
	return c
}

// session checks the parts of one session in order.
func (c *Collection) session(parts []Located) {
	c.Sessions++
	opening := parts[0].Report.Opening
	name := "session " + whole(opening.SessionID) + " of agent " + whole(opening.AgentID)
	part, before, this := int64(0), []string(nil), []string{""} // before and this: digests of the bundles of the previous part and of this part
	for i, p := range parts {
		o := p.Report.Opening
		if o.Part == part {
			// The same bytes in two places count as one bundle, and so does the same archive compressed in two ways.
			other := parts[i-1].Report
			sameArchive := other.TarSHA256 != "" && other.TarSHA256 == p.Report.TarSHA256
			if other.SHA256 != p.Report.SHA256 && !sameArchive {
				c.fault(name, "part %d was sealed twice: %s and %s", part, parts[i-1].Path, p.Path)
			}
			this = append(this, p.Report.SHA256)
			continue
		}
		before, this = this, []string{p.Report.SHA256}
		switch {
		case o.Part != part+1:
			c.fault(name, "part %d is missing", part+1)
		case !slices.Contains(before, o.PreviousBundleHash):
			c.fault(p.Path, "its previous bundle is %q, the part before has %q", o.PreviousBundleHash, before[0])
		case part > 0 && o.ExportedAt < parts[i-1].Report.Opening.ExportedAt: // both have the same layout, so they compare as text
			c.fault(p.Path, "exported at %s, before part %d (%s)", o.ExportedAt, part, parts[i-1].Report.Opening.ExportedAt)
		}
		if part > 0 && parts[i-1].Report.Opening.LastPart {
			c.Late = append(c.Late, fmt.Sprintf("%s: part %d comes after part %d, which is marked as the last", name, o.Part, part))
		}
		part = o.Part
	}
	if !parts[len(parts)-1].Report.Opening.LastPart {
		c.Open = append(c.Open, name)
	}
}

// whole returns a text of a bundle as verify_all.py quotes it: a JSON string in ASCII.
func whole(text string) string {
	return string(pyjson.AppendString(nil, strings.ToValidUTF8(text, "\ufffd")))
}

// foreign checks the links of bundles of other dialects.
func (c *Collection) foreign(bundles []Located) {
	type place struct{ session, signer, previous string }
	digests, taken := map[string]bool{}, map[place]Located{}
	for _, b := range bundles {
		digests[b.Report.SHA256] = true
	}
	for _, b := range bundles {
		r := b.Report
		if r.PreviousBundleHash != "" && !digests[r.PreviousBundleHash] {
			c.fault(b.Path, "its previous bundle %s is not here", r.PreviousBundleHash)
		}
		at := place{r.SessionID, r.PublicKey, r.PreviousBundleHash}
		if other, again := taken[at]; !again {
			taken[at] = b
		} else if other.Report.SHA256 != r.SHA256 {
			c.fault(fmt.Sprintf("session %q", r.SessionID), "was sealed twice: %s and %s", other.Path, b.Path)
		}
	}
}

func (c *Collection) fault(where, format string, args ...any) {
	c.Faults = append(c.Faults, Fault{Where: where, Message: fmt.Sprintf(format, args...)})
}
