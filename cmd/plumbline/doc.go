// Command plumbline is the operator's tool: it runs everything on one machine, and
// inspects and manages a running pipeline.
//
// It owns the command line: flags, help, reading of files, and the form of the output. The work
// is done by the packages that it calls. Its packages demo and bench run a whole machine.
//
// It is larger than other packages because it has more than twenty commands: each has one file, in
// which its flags, its call of another package and its output are read from top to bottom.
//
// Invariants: every command ends with one of three exit codes; text of others never controls the
// terminal; a command that reads ends on the first signal.
package main
