package service

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// version is what the build was told: go build -ldflags "-X github.com/plumbline/plumbline/pipeline/service.version=v1.2.3".
// make build VERSION=v1.2.3 and docker build --build-arg VERSION=v1.2.3 do so.
var version string

// unknownVersion is the version of a program that was built outside a clone, or with -buildvcs=false, and was not told its version.
const unknownVersion = "unknown"

// BuildVersion returns the version of the running program: the one that its build was told, otherwise
// the one that the Go command recorded (of the module, or derived from the commit), otherwise "unknown".
func BuildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return buildVersion(version, info)
}

// VersionText returns BuildVersion for people, with the commit if the program was built in a clone.
func VersionText() string {
	info, _ := debug.ReadBuildInfo()
	return versionText(version, info)
}

func buildVersion(told string, info *debug.BuildInfo) string {
	recorded := ""
	if info != nil && info.Main.Version != "(devel)" { // Go's word for nothing recorded
		recorded = info.Main.Version
	}
	return cmp.Or(told, recorded, unknownVersion)
}

func versionText(told string, info *debug.BuildInfo) string {
	text := buildVersion(told, info)
	settings := map[string]string{}
	if info != nil {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	switch commit := settings["vcs.revision"]; {
	case commit != "" && settings["vcs.modified"] == "true":
		return fmt.Sprintf("%s (commit %s, modified)", text, commit)
	case commit != "":
		return fmt.Sprintf("%s (commit %s)", text, commit)
	case text == unknownVersion:
		return "of unknown version (it was built without a version, and outside a clone or with -buildvcs=false)"
	}
	return text
}
