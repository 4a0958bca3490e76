package report

import (
	"slices"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/schema"
)

// claim is what a verification proves, and the check that proves it.
type claim struct {
	Says   string
	Checks []string
}

// The names of the checks, with which their sentences begin.
const (
	chainCheck     = "hash chain"
	signatureCheck = "signature"
	signerCheck    = "who signed"
	contentsCheck  = "contents"
	tracesCheck    = "traces"
	filesCheck     = "files"
	secondCheck    = "second signature"
)

// claims returns what the verification of an intact bundle proves.
func (p *Page) claims() (all []claim) {
	r := p.Report
	add := func(says string, checks ...string) {
		var sentences []string
		for _, check := range checks {
			if sentence := passed(r, check); sentence != "" {
				sentences = append(sentences, sentence)
			}
		}
		all = append(all, claim{says, sentences})
	}
	if r.Signature != aivs.SignatureValid {
		add("The parts of this file agree with one another. Since nobody signed it, this shows no more than that it was not damaged by accident.", chainCheck, contentsCheck, tracesCheck)
		return all
	}
	add("Since the file was signed, no row of the log was changed, added, removed or moved.", chainCheck, signatureCheck)
	contents := []string{aivs.CoversInputs, aivs.CoversOutputs, aivs.CoversErrors}
	if !slices.ContainsFunc(contents, func(c string) bool { return !slices.Contains(r.Covered, c) }) {
		add("Since then, no input, output or error of a row was changed.", contentsCheck, secondCheck)
	}
	if r.Opening != nil && passed(r, tracesCheck) != "" {
		add("The options, reasons, values and questions shown above are those of the records that the agent published, except for the values that were hidden before sealing.", tracesCheck)
	}
	if r.CoversAll() {
		add("The verdicts and the cards in this file are those that the operator sealed.", filesCheck, secondCheck)
	}
	if r.KeyPinned {
		add("The key that signed is the expected one.", signerCheck)
	}
	if r.PreviousBundleHash != "" {
		all = append(all, claim{"This part continues the bundle with the SHA-256 " + r.PreviousBundleHash + ". Whether that one is intact is for its own check to say.", []string{passed(r, filesCheck)}})
	}
	for _, a := range r.Anchors {
		all = append(all, claim{"Somebody other than the operator confirms this file: " + short(a.Says) + ".", []string{short(a.File)}})
	}
	return all
}

// limits returns what the verification does not prove.
func (p *Page) limits(decided []decision) (all []string) {
	r := p.Report
	for _, skipped := range r.Skipped {
		all = append(all, "NOT CHECKED: "+long(skipped))
	}
	all = append(all, r.NotProven...)
	if !r.Intact {
		return all
	}
	all = append(all, p.completeness(decided))
	if o := r.Opening; o != nil {
		if n := o.Redactions + o.OptionalRedactions; n > 0 {
			all = append(all, "Hidden values: "+counted(n, "value")+" that looked secret were replaced by [REDACTED] before the file was sealed. They are in no part of it.")
		}
		if !o.LastPart {
			all = append(all, "The rest of the session: this is not its last part. What followed is in another file, or was not sealed yet.")
		}
	}
	if r.Verdict != nil {
		all = append(all, "The verdicts: they are the conclusions of the operator's pipeline. The signature shows that they were not changed, not that they are right.")
	}
	return all
}

// completeness says whether a decision could be missing.
func (p *Page) completeness(all []decision) string {
	const missing = "Completeness: "
	numbered, gaps := len(all) > 0, false
	for i := range all {
		numbered = numbered && all[i].trace != nil && all[i].trace.Context.HasSequenceNumber
	}
	if v := session(p.Report, p.Contents); v != nil {
		gaps = slices.ContainsFunc(v.Remarks, func(r remark) bool { return r.Code == schema.TraceGap })
	}
	switch {
	case gaps:
		return missing + "the operator's pipeline found that records are missing (TRACE_GAP, above)."
	case numbered && p.total() == int64(len(all)):
		return missing + "the agent numbered its records, and the operator's pipeline found no gap. A record that the agent withheld at the end of the session leaves none."
	}
	return missing + "the agent did not number all of its records, so one that it never sent leaves no gap."
}
