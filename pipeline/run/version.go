package run

import "runtime/debug"

// BuildVersion returns the version of the running binary as the Go command recorded it: that of
// the module, or one derived from the revision it was built from.
func BuildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
