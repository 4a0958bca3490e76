// Package protocol is what package engine and the process that runs its library agree on: how the process
// is called and what its arguments are. Neither side imports the other: package engine/serve needs the C library, and
// who imports it is not a static program.
//
// The rest of the agreement is small: the process reads config.xml in the engine's directory, which package engine has written,
// and ends as every child of package child does.
package protocol

import "fmt"

const (
	// Child is the name under which the process is registered with package child. It is registered on Linux only:
	// the library exists for no other system, and engine.Locate reports that before anything is started.
	Child = "engine"
	// Program is the file name of the program in which it is registered.
	Program = "plumbline-engine"
)

// version changes with the arguments, with the files that the process reads, and with the release of the library
// if that has to be called in another way.
const version = "1"

// Arguments are the arguments of the process.
type Arguments struct {
	Library string // path of libchdb.so
	Dir     string // the engine's directory
}

// Words returns the arguments as a command line has them.
func (a Arguments) Words() []string { return []string{version, a.Library, a.Dir} }

// Parse is the inverse of Words. It returns an error for the arguments of another version.
func Parse(words []string) (Arguments, error) {
	if len(words) != 3 || words[0] != version {
		return Arguments{}, fmt.Errorf("engine: %s and the program that started it are of different versions: install both from one release, or build both with make build", Program)
	}
	return Arguments{Library: words[1], Dir: words[2]}, nil
}
