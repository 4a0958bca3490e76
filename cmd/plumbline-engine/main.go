// Command plumbline-engine runs the ClickHouse library for plumbline, which starts it as a child process. It
// is a program of its own because it needs glibc, as the library does: everything else is static.
package main

import (
	"fmt"
	"os"

	"github.com/plumbline/plumbline/child"
	_ "github.com/plumbline/plumbline/engine/serve"
)

const exitUsage = 2

func main() {
	child.Dispatch()
	fmt.Fprintln(os.Stderr, "plumbline-engine runs the database engine of plumbline up, demo and bench, which start it: it has no command of its own")
	os.Exit(exitUsage)
}
