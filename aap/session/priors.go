package session

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

const priorField = "context.prior_trace_ids"

// key replaces a trace id: ids are long, and there are many of them.
type key [16]byte

func keyOf(id string) key {
	sum := sha256.Sum256([]byte(id))
	return key(sum[:])
}

// known is a trace of the part.
type known struct {
	at     stamp
	priors []key
}

// asked is a prior trace that was unknown when it was named, and the first trace that names it.
type asked struct {
	id   string
	by   string
	at   stamp
	came bool  // it arrived
	when stamp // its place, once it came
}

// priors tracks prior_trace_ids. The newest ids of the part are known; an id that is unknown
// when it is named becomes a question.
type priors struct {
	known   map[key]known
	recent  []key // a ring buffer of the known ones, once there are maxKnown
	oldest  int
	asked   []asked
	index   map[key]int // of asked
	skipped int64       // prior ids beyond the limits
}

// prior checks the prior traces of a trace.
func (j *Judge) prior(t *schema.Trace, s stamp) {
	p := &j.priors
	self := keyOf(t.TraceID)
	ids := t.Context.PriorTraceIDs
	if more := len(ids) - maxPriors; more > 0 {
		p.skipped += int64(more)
		ids = ids[:maxPriors]
	}
	var named []key
	for _, id := range ids {
		k := keyOf(id)
		if k == self {
			j.find(schema.TraceOrder, schema.SeverityMedium, t.TraceID, priorField, "the trace names itself as prior")
			continue
		}
		if len(named) < maxEdges {
			named = append(named, k)
		}
		if _, met := p.known[k]; !met {
			p.ask(k, id, t.TraceID, s)
		}
	}
	if _, again := p.known[self]; !again { // otherwise a conflict: one id, several contents
		if len(p.recent) < maxKnown {
			p.recent = append(p.recent, self)
		} else {
			delete(p.known, p.recent[p.oldest])
			p.recent[p.oldest] = self
			p.oldest = (p.oldest + 1) % maxKnown
		}
		p.known[self] = known{at: s, priors: named}
	}
	if i, waited := p.index[self]; waited && !p.asked[i].came {
		p.asked[i].came, p.asked[i].when = true, s
	}
}

// ask records a question, once for each id.
func (p *priors) ask(k key, id, by string, at stamp) {
	if i, again := p.index[k]; again {
		if a := &p.asked[i]; !a.at.before(at) {
			a.by = min(a.by, strings.Clone(by)) // of the same time: independent of the order of arrival
		}
		return
	}
	if len(p.asked) == maxAsked {
		p.skipped++
		return
	}
	p.index[k] = len(p.asked)
	p.asked = append(p.asked, asked{id: strings.Clone(clip(id)), by: strings.Clone(by), at: at})
}

// open returns the questions that the part itself has not answered.
func (p *priors) open() (open []*asked) {
	for i := range p.asked {
		if !p.asked[i].came {
			open = append(open, &p.asked[i])
		}
	}
	return open
}

// order adds the faults in the order of prior traces within the part. Of two traces of the same
// time neither is later. Such traces may form a circle, which is reported once for each time.
func (p *priors) order(f *findings) {
	circular := map[int64]bool{}
	for i := range p.asked {
		a := &p.asked[i]
		if !a.came {
			continue
		}
		finding := schema.SessionFinding{Type: schema.TraceOrder, Severity: schema.SeverityMedium, TraceID: a.by, Field: priorField}
		if a.at.before(a.when) {
			finding.Description = laterText(a.id)
			if p.circle(keyOf(a.id), false) {
				finding.Description += ", which leads back to it in a circle"
			}
			f.add(finding)
		}
		if place := a.when.place(); !circular[place] && p.circle(keyOf(a.id), true) {
			circular[place] = true
			finding.TraceID, finding.Description = a.id, "prior traces run in a circle through this one"
			f.add(finding)
		}
	}
}

func laterText(id string) string { return fmt.Sprintf("names %q as prior, a later trace", id) }

// circle reports whether the prior traces of a trace lead back to it within maxWalk steps. If
// tied is true, it follows only traces of the same time.
func (p *priors) circle(start key, tied bool) bool {
	at := p.known[start].at
	seen := map[key]bool{}
	frontier := slices.Clone(p.known[start].priors)
	for steps := 0; len(frontier) > 0 && steps < maxWalk; steps++ {
		k := frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		trace := p.known[k]
		switch {
		case k == start:
			return true
		case seen[k] || tied && (trace.at.before(at) || at.before(trace.at)):
		default:
			seen[k] = true
			frontier = append(frontier, trace.priors...)
		}
	}
	return false
}
