package engine

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// Data of a version with fewer users keeps its passwords and gets the missing ones.
func TestPasswordsAreKeptAndCompleted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "passwords.json")
	if err := os.WriteFile(path, []byte(`{"admin":"a","service":"s","reader":"r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := loadPasswords(dir)
	if err != nil || first[adminUser] != "a" || first[serviceUser] != "s" || first[readerUser] != "r" || first[operatorUser] == "" {
		t.Fatalf("the passwords are %v, error %v", first, err)
	}
	if again, err := loadPasswords(dir); err != nil || !maps.Equal(first, again) {
		t.Errorf("the passwords were %v and are %v, error %v", first, again, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, error %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte(`{"admin"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadPasswords(dir); err == nil {
		t.Error("half a file was read")
	}
}

// In a version that did not sync the file, a loss of power in the first seconds left it
// empty: new passwords are generated.
func TestPasswordsAfterALossOfPower(t *testing.T) {
	for _, left := range []string{"", "\x00\x00\x00"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "passwords.json"), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := loadPasswords(dir)
		if err != nil || made[readerUser] == "" {
			t.Fatalf("after %q: %v, error %v", left, made, err)
		}
		if again, err := loadPasswords(dir); err != nil || !maps.Equal(made, again) {
			t.Errorf("after %q: %v, then %v: error %v", left, made, again, err)
		}
	}
}
