// Package redact hides secrets in JSON and in text: under the names that draft-stone-aivs-00 lists
// (section 3.3), and by optional rules where no name of a member shows the secret. It also
// truncates the outputs of an action (section 3.4).
//
// It owns the rules, what a name and a value look like in each syntax, and the form of truncated
// outputs. It does not know traces or rows. It does no I/O.
//
// Invariants: valid JSON stays valid JSON, and every byte outside of what is replaced stays. What is
// redacted has nothing left to redact. Text that cannot be read with certainty is hidden whole.
// The replacements of the draft's rule and of the optional rules are counted separately.
package redact
