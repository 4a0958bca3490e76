// Package similarity measures how alike decisions and declarations are: the
// structural features of AAP section 8.3, their cosine, the score of a trace
// against its card (section 7.3, check 5), the self-similarity matrix of a
// session, and the 60/30/10 similarity of two texts, exact or by sketches.
//
// The features are those of the table in section 8.3. Of a trace they are those
// of the published SDKs at HEAD (algorithm 1.2.0), bit for bit; where the two SDKs
// differ we follow TypeScript: a trace without an escalation block has no
// escalation feature (Python gives it escalation:not_required). The SDKs' features
// of a card are more than the section names; they are in aap/reference.
//
// It owns no threshold and judges nothing: packages aap and aap/drift do. The
// similarity of texts never enters a score.
//
// Invariants: a vector holds each key once, in the order of first appearance,
// and every sum runs in that order, because floating-point sums depend on it.
package similarity
