package docs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A release that deploy/release-sign.sh has signed passes the commands of OPERATIONS.md, and no other does: every file
// is changed in one byte, and the signature is one of another key.
func TestReleaseIsVerified(t *testing.T) {
	for _, tool := range []string{"ssh-keygen", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (Debian: openssh-client, coreutils)", tool)
		}
	}
	text, err := os.ReadFile("OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)### Verify a release\n.*?\n\n((?:    [^\n]*\n)+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("OPERATIONS.md has no commands in section Verify a release")
	}
	verify := string(found[1])
	keys := t.TempDir()
	for _, name := range []string{"ours", "other"} {
		run(t, "", nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", filepath.Join(keys, name))
	}
	public, err := os.ReadFile(filepath.Join(keys, "ours.pub"))
	if err != nil {
		t.Fatal(err)
	}
	signed := func(key string) string {
		dir, sums := t.TempDir(), ""
		for _, arch := range []string{"amd64", "arm64"} {
			name, content := "plumbline-v1.2.3-linux-"+arch+".tar.gz", []byte("the archive for "+arch)
			write(t, filepath.Join(dir, name), content)
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
		}
		write(t, filepath.Join(dir, "SHA256SUMS"), []byte(sums))
		run(t, "", []string{"PLUMBLINE_RELEASE_KEY=" + filepath.Join(keys, key)}, "sh", "../deploy/release-sign.sh", dir)
		write(t, filepath.Join(dir, "plumbline-release.pub"), public)
		return dir
	}
	check := func(dir string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -e\n"+verify)
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	good := signed("ours")
	if output, err := check(good); err != nil || !strings.Contains(output, "Good \"plumbline-release\" signature") || strings.Count(output, ": OK") != 2 {
		t.Fatalf("%v\n%s", err, output)
	}
	if output, err := check(signed("other")); err == nil {
		t.Errorf("a release that another key has signed passes\n%s", output)
	}
	for _, name := range []string{"plumbline-v1.2.3-linux-amd64.tar.gz", "SHA256SUMS", "SHA256SUMS.sig"} {
		content, err := os.ReadFile(filepath.Join(good, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := append([]byte(nil), content...)
		changed[len(changed)/2] ^= 1
		write(t, filepath.Join(good, name), changed)
		if output, err := check(good); err == nil {
			t.Errorf("a release with a changed byte in %s passes\n%s", name, output)
		}
		write(t, filepath.Join(good, name), content)
	}
	if output, err := check(good); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// Nothing is signed without a key, nor if the files are not those of the checksums.
func TestReleaseIsNotSigned(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), []byte("a"))
	write(t, filepath.Join(dir, "SHA256SUMS"), fmt.Appendf(nil, "%x  a\n", sha256.Sum256([]byte("b"))))
	for want, env := range map[string]string{"PLUMBLINE_RELEASE_KEY": "", "did NOT match": "PLUMBLINE_RELEASE_KEY=/nowhere"} {
		cmd := exec.CommandContext(t.Context(), "sh", "../deploy/release-sign.sh", dir)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), env}
		if output, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%v, want %q in\n%s", err, want, output)
		}
	}
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, output)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
