package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/aivs/export"
)

// An interrupted export leaves no file behind. The next one removes what one that was killed left.
func TestInterruptedExportLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "month.tar")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := writeArchive(interrupted, path, new(export.Archive)); !errors.Is(err, errInterrupted) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an interrupted export left %v, error %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".month.tar.1234"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := writeArchive(t.Context(), path, new(export.Archive)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "month.tar" {
		t.Errorf("the directory holds %v, error %v", left, err)
	}
	if _, err := writeArchive(t.Context(), path, new(export.Archive)); err == nil {
		t.Error("an export replaced a file")
	}
}
