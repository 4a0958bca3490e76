package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aivs"
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
		add("The options, reasons, values and questions shown above are those of the records that were sealed with this log.", tracesCheck)
	}
	if r.CoversAll() {
		add("The verdicts and the cards in this file are those that were sealed.", filesCheck, secondCheck)
	}
	if r.KeyPinned {
		add("The key that signed is the one that was expected when this page was made, or one that it leads to.", signerCheck)
	}
	if r.PreviousBundleHash != "" && r.CoversAll() {
		add("This part continues the bundle with the SHA-256 "+r.PreviousBundleHash+". Verify that bundle to know whether it is intact.", filesCheck, secondCheck)
	}
	for _, a := range r.Anchors {
		all = append(all, claim{"Whoever holds the key of this time stamp or log confirms " + confirmed(r, a) + ": " + short(a.Says) + ". This check does not show whether that is somebody other than the operator.", []string{fmt.Sprintf("the file %q", short(a.File))}})
	}
	return all
}

// confirmed returns what a time stamp or a log confirms. A log has the SHA-256 of the file. A time stamp
// is over the signature. Only in Plumbline's bundles is this signature over everything else in the file.
func confirmed(r *aivs.Report, a aivs.Anchor) string {
	if r.Opening == nil && strings.HasSuffix(a.File, timestampSuffix) {
		return "the signature of this file, and nothing that this signature does not cover"
	}
	return "this file"
}

// timestampSuffix is that of package anchor, which links more than the page needs.
const timestampSuffix = ".tsr"

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
	if r.Signature == aivs.SignatureValid {
		all = append(all, "Other versions: whoever holds the key can sign another file about the same session at any time, with any date. The time of sealing is the operator's statement.")
	}
	all = append(all, p.completeness(decided))
	if o := r.Opening; o != nil {
		all = append(all, "Who acted: that these records are those of the agent named above, and that it published them like this, is the operator's statement.")
		if n := o.Redactions + o.OptionalRedactions; n > 0 {
			all = append(all, "Hidden values: the operator counts "+counted(n, "replacement")+" of values by [REDACTED] before the file was sealed. Nothing shows that the same values are in no other part of it.")
		}
		if !o.LastPart {
			all = append(all, "The rest of the session: the operator states that this is not its last part. What followed is in another file, or was not sealed yet.")
		}
	}
	if r.Verdict != nil {
		all = append(all, "The verdicts: they are the conclusions of the operator's pipeline. The signature shows that they were not changed, not that they are right.")
		all = append(all, p.contradictions(decided)...)
	}
	return append(all, contradicted(decided)...)
}

// completeness says whether a decision could be missing.
func (p *Page) completeness(all []decision) string {
	const missing = "Completeness: "
	numbered, readable := len(all) > 0, p.total() == int64(len(all))
	var numbers []uint64
	for i := range all {
		readable = readable && all[i].trace != nil
		if numbered = numbered && readable && all[i].trace.Context.HasSequenceNumber; numbered {
			numbers = append(numbers, all[i].trace.Context.SequenceNumber)
		}
	}
	v := session(p.Report, p.Contents)
	switch {
	case v != nil && v.gaps > 0:
		return missing + "the operator's pipeline found that records are missing (TRACE_GAP, above)."
	case p.Report.VerdictOver > 0:
		return missing + "session.json is too large to be read, so this page does not know whether anybody searched for missing records."
	case v == nil || !v.whole:
		return missing + "the file records no search for missing records."
	case !readable:
		return missing + "not all records could be read for this page, so it does not know whether the agent numbered them."
	case numbered && leftOut(numbers) != "" && slices.ContainsFunc(v.Unchecked, func(u string) bool { return strings.HasPrefix(u, "sequence numbers") }):
		return missing + "this file has no record with " + leftOut(numbers) + ", and the operator's pipeline says that it could not look for all missing records (above)."
	case numbered && leftOut(numbers) != "":
		return missing + "CONTRADICTION, unless other records of the agent have these numbers: this file has no record with " + leftOut(numbers) + ", and the operator's pipeline counts no gap. " +
			"An agent may number the records of several sessions, or of several parts, with one counter. This file does not show whether it did."
	case numbered:
		return missing + "the agent numbered its records, and the operator's pipeline found no gap. A record that the agent withheld at the end of the session leaves none."
	}
	return missing + "the agent did not number all of its records, so one that it never sent leaves no gap."
}
