// Package similarity measures the similarity of decisions and declarations: the structural
// features of AAP section 8.3, their cosine, the score of a trace against its card (section
// 7.3, check 5), the self-similarity matrix of a session, and the 60/30/10 similarity of two
// texts, exact or by sketches.
//
// The features are those of the table in section 8.3. For a trace they are bit for bit those of
// the published SDKs at HEAD (algorithm 1.2.0). Where the two SDKs differ, this package follows
// TypeScript: a trace without an escalation block has no escalation feature (Python gives it
// escalation:not_required). For a card the SDKs have more features than the section names;
// these are in aap/reference.
//
// The package owns no threshold and judges nothing: packages aap and aap/drift do. The
// similarity of texts never enters a score.
//
// Invariants: a vector has each key once, in the order of first appearance. Every sum runs in
// that order, because floating-point sums depend on it.
package similarity
