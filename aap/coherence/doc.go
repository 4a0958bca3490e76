// Package coherence judges whether two agents, or a fleet of them, can work together on a task
// according to their cards (AAP section 6), under profile spec.
//
// It owns the score (6.4), the order of resolution (6.5), the conditions of proceeding, and the
// maximum age of a message (9.4). It does not own the messages (package schema), their
// transport, or the look-up of cards, signatures and revocations. It does no I/O and reads no
// clock.
//
// Decisions where the specification is silent:
//   - A conflict is a value that one card declares and the other lists in
//     conflicts_with. Every conflict is listed. While it is unresolved it forbids
//     proceeding and lowers the score: a refusal holds whatever the task is called
//     and requires.
//   - A card can only give up its own refusals: subsumption lifts a refusal only if
//     the refusing card states the subsumption. Otherwise an agent could declare that
//     its value includes everything. A principal lifts a refusal with a new card.
//   - A card does not say because of which of its values it refuses another. A
//     conflict names its foremost value that the other card does not declare.
//   - Agents cannot negotiate values that the task requires (values_required) and the
//     standard values of section 4.4; their principals decide.
//   - A proposal can give up only values in conflict, and they stay required: a
//     concession ends a conflict and never raises the score.
//   - A task that names no value, or an empty list, requires all values that
//     either card declares. Where no value is required at all, the score is 0.
//   - A proposed resolution always has its alternative: the scope without the parts
//     in conflict. Where its score is too low, only the principals can accept it.
//   - A card declares nothing if it is unknown, not yet issued, expired, revoked,
//     another agent's, or older than one of its agent that is in force.
//
// Invariants: a result depends only on its arguments, byte for byte. Compatible equals Proceed,
// and Reasons is empty exactly when Proceed is true.
package coherence
