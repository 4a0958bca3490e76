package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// ranks orders severities, the gravest first.
var ranks = map[schema.Severity]int{schema.SeverityCritical: 0, schema.SeverityHigh: 1, schema.SeverityMedium: 2}

// findings collects the findings. All of them are counted; of each type the first are listed.
type findings struct {
	listed   []schema.SessionFinding
	counts   map[string]int64
	critical bool
}

func (f *findings) add(finding schema.SessionFinding) {
	f.counts[finding.Type]++
	f.critical = f.critical || finding.Severity == schema.SeverityCritical
	if f.counts[finding.Type] <= maxListed {
		f.listed = append(f.listed, finding)
	}
}

// Unlogged adds the finding that a card of the part commits its agent to a Merkle log (AAP
// section 4.7, tamper_evidence) but that the part's bundle will have no proof of inclusion. Only
// the caller, who seals the bundle, knows this.
func (j *Judge) Unlogged(cardID string) {
	j.found.add(schema.SessionFinding{Type: schema.NoInclusionProof, Severity: schema.SeverityMedium, Field: "audit_commitment.tamper_evidence",
		Description: fmt.Sprintf("card %q commits to tamper evidence by a Merkle log, and bundles are put into none", clip(cardID))})
}

// clone returns an independent copy.
func (f *findings) clone() *findings {
	return &findings{listed: slices.Clone(f.listed), counts: maps.Clone(f.counts), critical: f.critical}
}

// gravest returns the findings that a verdict lists: the gravest first, and otherwise in the
// order in which they were found.
func (f *findings) gravest() []schema.SessionFinding {
	slices.SortStableFunc(f.listed, func(a, b schema.SessionFinding) int {
		return cmp.Compare(ranks[a.Severity], ranks[b.Severity])
	})
	if f.listed == nil {
		return []schema.SessionFinding{}
	}
	return f.listed[:min(len(f.listed), schema.MaxSessionFindings)]
}

// recommend derives the recommendation from the gravest recommendation of the traces' own
// verdicts and from the findings.
func (f *findings) recommend(traces schema.Recommendation) schema.Recommendation {
	switch {
	case f.critical || traces == schema.Deny:
		return schema.Deny
	case len(f.counts) > 0:
		return schema.Review
	}
	return traces
}

// clip bounds a text for a description.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
