// Package child keeps one process running beside this one.
//
// It owns the life of a child: starting it, finding out when it is ready,
// restarting it after a crash for as long as this process lives, stopping it
// cleanly, and keeping its last words for error messages. The child is either
// this very binary, re-executed into a function of the registry (Register,
// Dispatch), or a foreign command. What the child does is its owner's business.
//
// Invariants: no child outlives its parent, not even a parent killed with
// SIGKILL; at most one process of a Process runs at a time; a first start that
// fails is an error of Start, every later failure is a restart; each change of
// state is logged once.
package child
