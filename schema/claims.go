package schema

import "strings"

// The provenance tags of claims (message-integrity RFC, section 6).
const (
	TagGrounded = "[G]" // backed by a tool result, a file or an answer of an API
	TagInferred = "[I]" // synthesized, estimated or reasoned
)

// Claims counts the claims in the selection reasoning by their tags.
func (d *Decision) Claims() (grounded, inferred int) {
	if strings.IndexByte(d.Reasoning, '[') < 0 {
		return 0, 0
	}
	return strings.Count(d.Reasoning, TagGrounded), strings.Count(d.Reasoning, TagInferred)
}
