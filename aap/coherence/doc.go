// Package coherence judges whether two agents, or a fleet of them, can work on a
// task together by what their cards declare (AAP section 6), under profile spec.
//
// It owns the score (6.4), the order of resolution (6.5), what proceeding
// depends on, and how old a message may be (9.4).
// It does not own the messages (package schema), how they travel, nor where
// cards, signatures and revocations are looked up. It does no I/O and reads no
// clock.
//
// Decisions where the specification is silent:
//   - A conflict is a value that one card declares and the other lists in
//     conflicts_with. Every conflict is listed and, while it stands, forbids to
//     proceed and lowers the score: to refuse is to refuse, whatever the task is
//     called and requires.
//   - A card gives up its own refusals alone: subsumption lifts one only where the
//     refusing card states it. Else an agent could declare that its value includes
//     everything. A principal lifts a refusal by a new card.
//   - A card does not say for the sake of which of its values it refuses another. A
//     conflict names its foremost value that the other card does not declare.
//   - Values that the task requires (values_required) and the standard values of
//     section 4.4 are not negotiable between agents; their principals are asked.
//   - A proposal lays aside values in conflict alone, and they stay required: a
//     concession ends a conflict and never raises the score.
//   - A task that names no value, or an empty list, requires the union of what both
//     cards declare. Where no value is required at all, nothing coheres: the score
//     is 0.
//   - A proposed resolution always has its alternative: the scope without what is in
//     conflict. Where its score is too low, only the principals can accept it.
//   - A card that is unknown, not yet issued, expired, revoked, another's, or older
//     than one that its agent has in force declares nothing.
//
// Invariants: a result depends on its arguments alone, to the byte; Compatible
// equals Proceed, and Reasons is empty exactly then.
package coherence
