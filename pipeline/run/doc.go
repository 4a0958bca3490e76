// Package run is what every command has in common between its first line and
// its exit code: reading the configuration, signals and the drain, the HTTP
// interface for operators, and retrying.
//
// A setting has one name in three spellings: the flag --nats-url, the variable
// PLUMBLINE_NATS_URL and the key nats_url of the YAML file. Flags win over the
// environment, the environment over the file, the file over the defaults that
// the command's constructor filled in. It owns no setting of a single stage and
// knows no stage.
//
// Invariants: nothing unknown is ignored (YAML keys, flags, and variables that
// look like a misspelt setting); a configuration is validated whole before
// anything starts, and all its faults are reported; secrets are never printed;
// the first signal drains, the second leaves at once.
package run
