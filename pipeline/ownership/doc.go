// Package ownership shares the partitions of a stream among the processes of a stage, so each
// partition has one owner at a time, and another one soon after its owner is gone.
//
// It owns the record of members, owners, epochs and positions (stream.Shares), the balance between
// the members, the hand-over of a partition, the questions that find out whether a member is still
// there, and the fence. It does not own what a stage does with its messages.
//
// Invariants: every change of the record is a compare-and-swap, so an owner whose partition went to
// another one cannot move its position. A position only covers messages that the stage has called
// done. Losing a partition is harmless at any moment: the next owner begins at the position, and
// the stage's results are the same whoever computes them. No clocks are compared, and a member that
// has nothing to do writes nothing.
package ownership
