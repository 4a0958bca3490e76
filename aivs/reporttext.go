package aivs

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes the report for people; text out of the bundle is quoted, so
// that it cannot steer a terminal.
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

// SignatureText says in words what became of the signature.
func (r *Report) SignatureText() string {
	switch {
	case r.Signature == SignatureUnchecked:
		return "not checked (stopped at the first fault)"
	case r.Signature == SignatureValid && !r.Intact:
		return "valid over the rows, but the bundle is not intact"
	}
	return r.Signature
}

// Conclusion is the one sentence about the bundle: whether it is intact, and where not
// all of it is covered by a signature, what is. The sentences of verify.py are the same.
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

// coverage names in words what a signature covers.
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
