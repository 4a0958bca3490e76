package aivs

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes the report for people. Text from the bundle is quoted, so it cannot send
// control sequences to a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dialect    %s\nsession    %q\nrows       %d\nchain hash %s\nsignature  %s", r.Dialect, r.SessionID, r.Rows, r.ChainHash, r.SignatureText())
	if r.PublicKey != "" {
		fmt.Fprintf(&b, " %s (key id %s, pinned: %t)", r.PublicKey, r.KeyID, r.KeyPinned)
	}
	b.WriteByte('\n')
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "FAIL  %q: %s\n", f.Where, f.Message)
	}
	for _, a := range r.Anchors {
		fmt.Fprintf(&b, "PASS  %q: %s\n", a.File, a.Says)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "SKIP  %s\n", s)
	}
	fmt.Fprintf(&b, "\n%s\n%s\n\nNot proven:\n", r.Conclusion(), r.VerdictText())
	for _, s := range r.NotProven {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SignatureText returns the result of checking the signature as a sentence.
func (r *Report) SignatureText() string {
	switch {
	case r.Signature == SignatureUnchecked:
		return "not checked (stopped at the first fault)"
	case r.Signature == SignatureValid && !r.Intact:
		return "valid over the rows, but the bundle is not intact"
	}
	return r.Signature
}

// Conclusion returns one sentence about the bundle: whether it is intact and, where the signature
// does not cover all of it, what it does cover. verify.py has the same sentences.
func (r *Report) Conclusion() string {
	const aboutAgent = "It says nothing about whether the agent behaved well."
	signed := r.Signature == SignatureValid
	switch {
	case !r.Intact:
		return "NOT INTACT: do not rely on this bundle."
	case !signed:
		return "INTACT, NOT SIGNED: this bundle agrees with itself, but anyone can have made or changed it. " + aboutAgent
	case slices.Contains(r.Covered, CoversFiles) && slices.Contains(r.Covered, CoversErrors):
		return "INTACT: this bundle is unchanged since it was signed. " + aboutAgent
	}
	return "INTACT IN PART: the signature covers " + coverage(r.Covered) + "; nothing else in this bundle is protected. " + aboutAgent
}

// coverage lists in words what a signature covers.
func coverage(covered []string) string {
	names := map[string]string{
		CoversRows:   "session, action, tool, cost, time and order of the rows",
		CoversInputs: "their inputs", CoversOutputs: "their outputs", CoversErrors: "their errors", CoversFiles: "the other files",
	}
	var words []string
	for _, c := range covered {
		words = append(words, names[c])
	}
	return strings.Join(words, ", ")
}
