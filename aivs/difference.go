package aivs

// Difference returns the name of the first field in which a row of an intact bundle differs from its
// trace, the line of traces.jsonl whose digest the row states, such as "inputs_json". It returns ""
// where they agree. A verifier does not check this: whoever seals a bundle can make both say anything.
// Difference does not compare redacted values and truncated outputs.
func Difference(row *Row, line []byte) string { return difference(row, line) }
