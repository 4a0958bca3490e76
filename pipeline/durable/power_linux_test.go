package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
)

// A loss of power does not undo a completed call of this package. The same work done with package
// os is lost, which shows that the test can detect a loss.
func TestSyncedFilesSurviveALossOfPower(t *testing.T) {
	disk := durabletest.New(t, filepath.Join(t.TempDir(), "disk"), 32)
	at := func(name string) string { return filepath.Join(disk.Dir, name) }
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, content string) error { return durable.WriteFile(at(name), []byte(content), 0o600) }
	must(write("replaced", "first"), write("removed", "x"), write("moved", "x"), durable.MkdirAll(at("goal"), 0o700))

	// The next sync writes the names of these files to the journal.
	must(os.WriteFile(at("staged"), []byte("not synced"), 0o600), os.Rename(at("staged"), at("not synced")))

	must(write("replaced", "second"), durable.Rename(at("moved"), at("goal/moved")))
	must(durable.Remove(at("removed")), durable.MkdirAll(at("a/b"), 0o700))
	must(write("made", "content")) // last, so no later sync hides a missing one
	must(os.Rename(at("made"), at("renamed and not synced")))
	disk.CutPower()
	disk.RestorePower()

	for name, want := range map[string]string{"made": "content", "replaced": "second", "goal/moved": "x"} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]bool{"a/b": true, "removed": false, "moved": false, "renamed and not synced": false} {
		if _, err := os.Stat(at(name)); (err == nil) != want {
			t.Errorf("%s: %v; want it to exist: %v", name, err, want)
		}
	}
	if got, err := os.ReadFile(at("not synced")); err != nil || !durable.Blank(got) {
		t.Errorf("what was not synced holds %q, %v: this test shows nothing", got, err)
	}
}
