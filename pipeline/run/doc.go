// Package run holds what every command needs between its first line and its exit code: reading
// the configuration, signals and the drain, the HTTP interface for operators, and retrying.
//
// A setting has one name in three spellings: the flag --nats-url, the variable PLUMBLINE_NATS_URL
// and the key nats_url of the YAML file. Flags override the environment, the environment
// overrides the file, and the file overrides the defaults that the command's constructor filled
// in. The package owns no setting of a single stage and does not know the stages.
//
// Invariants: nothing unknown is ignored (YAML keys, flags, and variables that look like a
// misspelt setting); a whole configuration is validated before anything starts, and all its
// faults are reported; secrets are never printed; the first signal starts the drain, the second
// one ends the process at once.
package run
