package service

import (
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

// A program says the version that its build was told, else what Go recorded, and else that it is unknown.
func TestVersions(t *testing.T) {
	clone := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}
	changed := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		told, recorded string
		settings       []debug.BuildSetting
		version, text  string
	}{
		{"v1.2.3", "(devel)", nil, "v1.2.3", "v1.2.3"},
		{"v1.2.3", "v0.0.0-1-abc", clone, "v1.2.3", "v1.2.3 (commit abc)"},
		{"", "v0.0.0-1-abc+dirty", changed, "v0.0.0-1-abc+dirty", "v0.0.0-1-abc+dirty (commit abc, modified)"},
		{"", "v1.0.0", nil, "v1.0.0", "v1.0.0"}, // go install …@v1.0.0
		{"", "(devel)", nil, "unknown", "of unknown version (it was built without a version, and outside a clone or with -buildvcs=false)"},
		{"", "", nil, "unknown", "of unknown version (it was built without a version, and outside a clone or with -buildvcs=false)"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.recorded}, Settings: c.settings}
		if got := buildVersion(c.told, info); got != c.version {
			t.Errorf("told %q, recorded %q: version %q, want %q", c.told, c.recorded, got, c.version)
		}
		if got := versionText(c.told, info); got != c.text {
			t.Errorf("told %q, recorded %q: %q, want %q", c.told, c.recorded, got, c.text)
		}
	}
	if got := buildVersion("", nil); got != "unknown" {
		t.Errorf("without build information: %q", got)
	}
}

// make build and docker build set the variable that is read: the linker ignores a wrong name.
func TestBuildsTellTheVersion(t *testing.T) {
	flag := "-X " + reflect.TypeFor[Env]().PkgPath() + ".version="
	for _, file := range []string{"../../Makefile", "../../Dockerfile"} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), flag) {
			t.Errorf("%s: no %q: %v", file, flag, err)
		}
	}
}
