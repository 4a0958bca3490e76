// Package config reads the configuration of a command, and holds the settings that commands share.
//
// A setting has one name in three spellings: the flag --nats-url, the variable PLUMBLINE_NATS_URL
// and the key nats_url of the YAML file. Flags override the environment, the environment
// overrides the file, and the file overrides the defaults that the command's constructor filled
// in. The package owns no setting of a single stage, opens no connection and starts nothing.
//
// Invariants: nothing unknown is ignored (YAML keys, flags, and variables that look like a
// misspelt setting); a whole configuration is validated before anything starts, and all its
// faults are reported; secrets are never printed.
package config
