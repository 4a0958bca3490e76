package main

import "github.com/plumbline/plumbline/pipeline/config"

// examples returns the end of a help text: command lines that work as they stand.
func examples(lines ...string) string { return config.Examples(lines...) }
