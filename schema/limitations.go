package schema

// Limitations returns the five statements of AAP section 10.1, which every implementation must
// make clear to its users. The tool, the HTTP interface and the bundles all print them from
// here. The caller owns the slice.
func Limitations() []string {
	return []string{
		"AAP does NOT ensure alignment—it provides visibility.",
		"Verified does NOT equal safe.",
		"AP-Trace is sampled, not complete.",
		"Value coherence is relative to declared values.",
		"Tested on transformer-based agents; unknown unknowns exist for other substrates.",
	}
}
