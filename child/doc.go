// Package child keeps one child process running.
//
// It owns the life of a child: starting it, detecting when it is ready,
// restarting it after a crash for as long as this process lives, stopping it
// cleanly, and keeping its last output for error messages. It chooses free ports, and
// keeps those of a child that is down. The child is a function
// of the registry (Register, Dispatch), for which this binary or another one of this
// repository is executed, or a foreign command. The package knows nothing of the child's work.
//
// Invariants: no child outlives its parent, not even a parent killed with
// SIGKILL; at most one process of a Process runs at a time; a first start that
// fails is an error of Start, every later failure is a restart; each change of
// state is logged once.
package child
