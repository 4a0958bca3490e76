package aivs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// Content that was compressed before may be anywhere in a gzip member, next to content of any size
// and of any likeness to it: a reference from one to the other would be a wrong distance.
func TestInsertedContent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(string(verifier))
	text := func(size int) []byte { // words of verify.py in any order, so that everything is like everything
		var b []byte
		for len(b) < size {
			b = append(append(b, words[random.IntN(len(words))]...), ' ')
		}
		return b[:size]
	}
	sizes := []int{0, 1, 2, 511, 4096, 32767, 32768, 32769, 65535, 65536, 70_000}
	for round := range 60 {
		before, inside, after := text(sizes[random.IntN(len(sizes))]), text(sizes[random.IntN(len(sizes))]), text(sizes[random.IntN(len(sizes))])
		switch round % 4 {
		case 0:
			before, after = inside, inside
		case 1:
			after = before
		}
		known := precompress(inside)
		var out bytes.Buffer
		z, err := newGzipWriter(&out)
		var want []byte
		for range 1 + round%3 {
			_, failed := z.Write(before)
			failures := []error{err, failed, z.insert(known)}
			_, failed = z.Write(after)
			for _, err := range append(failures, failed) {
				if err != nil {
					t.Fatal(err)
				}
			}
			want = append(append(append(want, before...), inside...), after...)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if got := aivstest.Gunzip(t, out.Bytes()); !bytes.Equal(got, want) { // checks the trailer, too
			t.Fatalf("round %d: %d, %d and %d bytes: the member has other content", round, len(before), len(inside), len(after))
		}
	}
}

// Other programs read what is in a bundle: gzip, and Python's gzip and tarfile. The archive is the
// one that a tar writer writes, and verify.py unpacked from it accepts the bundle.
func TestOthersUnpackABundle(t *testing.T) {
	directory := t.TempDir()
	for name, traces := range map[string]int{"short": 1, "long": 400} { // more than 32 KiB before verify.py
		bundle := build(t, sampleInput(traces), testKey("k"))
		file := filepath.Join(directory, name+".tar.gz")
		writeFile(t, file, bundle.Bytes)
		if out, err := exec.Command("gzip", "--test", file).CombinedOutput(); err != nil {
			t.Errorf("gzip: %v\n%s", err, out)
		}
		const unpack = `
import gzip, hashlib, runpy, sys, tarfile
with gzip.open(sys.argv[1]) as stream:
    print(hashlib.sha256(stream.read()).hexdigest())
with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])
sys.argv = ["verify.py", sys.argv[2] + "/session_proof"]
runpy.run_path(sys.argv[1] + "/verify.py", run_name="__main__")
`
		out, err := exec.Command("python3", "-I", "-c", unpack, file, filepath.Join(directory, name)).CombinedOutput()
		if err != nil {
			t.Errorf("python: %v\n%s", err, out)
		}
		sum := sha256.Sum256(aivstest.Gunzip(t, bundle.Bytes))
		if !strings.HasPrefix(string(out), hex.EncodeToString(sum[:])) || !strings.Contains(string(out), "INTACT") {
			t.Errorf("%s: another archive than %x, or not intact:\n%s", name, sum, out)
		}
		if report := judge(t, bundle.Bytes, Options{}); report.TarSHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: tar_sha256 is %s, not %x", name, report.TarSHA256, sum)
		}
	}
}
