package aivs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// An entry must be a plain file below session_proof, or a directory, with a safe name.
func TestSafeNames(t *testing.T) {
	long := root + strings.Repeat("x", maxName-len(root))
	for _, c := range []struct {
		h    tar.Header
		want string // "" for a directory
		good bool
	}{
		{tar.Header{Name: root + "x", Typeflag: tar.TypeReg}, "x", true},
		{tar.Header{Name: "./" + root + "a/b", Typeflag: tar.TypeReg}, "a/b", true},
		{tar.Header{Name: long, Typeflag: tar.TypeReg}, long[len(root):], true},
		{tar.Header{Name: long + "x", Typeflag: tar.TypeReg}, "", false},
		{tar.Header{Name: ".", Typeflag: tar.TypeDir}, "", true},
		{tar.Header{Name: "./", Typeflag: tar.TypeDir}, "", true},
		{tar.Header{Name: "session_proof", Typeflag: tar.TypeDir}, "", true},
		{tar.Header{Name: root + "d/", Typeflag: tar.TypeDir}, "", true},
		{tar.Header{Name: "elsewhere", Typeflag: tar.TypeDir}, "", false},
		{tar.Header{Name: ".", Typeflag: tar.TypeReg}, "", false},
		{tar.Header{Name: "./", Typeflag: tar.TypeReg}, "", false},
		{tar.Header{Name: root, Typeflag: tar.TypeReg}, "", false},
		{tar.Header{Name: root + "x/", Typeflag: tar.TypeReg}, "", false},
		{tar.Header{Name: root + "d/", Typeflag: tar.TypeDir, Size: 1}, "", false},
		{tar.Header{Name: ".", Typeflag: tar.TypeDir, Size: 512}, "", false},
		{tar.Header{Name: root + "x", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"GNU.sparse.major": "1"}}, "", false},
		{tar.Header{Name: root + "x", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"comment": "1"}}, "x", true},
	} {
		if got, err := safeName(&c.h); got != c.want || (err == nil) != c.good {
			t.Errorf("%.40q of type %c: %.40q, %v", c.h.Name, c.h.Typeflag, got, err)
		}
	}
}

// An archive may have as many bytes as allowed, and may exceed the ratio only up to a size. An
// archive of our own dialect states its size.
func TestBoundsOfTheArchive(t *testing.T) {
	own := aivstest.Gunzip(t, build(t, sampleInput(1), testKey("k")).Bytes)
	for bytesAllowed, want := range map[int64][]string{int64(len(own)): nil, int64(len(own)) - 1: {"archive: more than"}} {
		sayFaults(t, "bytes", judge(t, aivstest.Gzip(t, own), Options{limits: limits{bytes: bytesAllowed}}), want...)
	}
	big := tarOf(t, tar.Header{Name: root + "x", Typeflag: tar.TypeReg, Size: 4096})
	for bytesAllowed, want := range map[int64]string{4096: "archive: more than 4096 bytes uncompressed", 4095: `archive: "x": 4096 bytes, more than 4095`} {
		sayFaults(t, "entry", judge(t, aivstest.Gzip(t, big), Options{limits: limits{bytes: bytesAllowed}}), want)
	}
	const ratio = 250
	for _, c := range []struct {
		unpacked, compressed int64
		good                 bool
	}{{ratioFloor, 1, true}, {ratioFloor + 1, 1, false}, {ratioFloor + 1, ratioFloor / ratio, true}, {ratioFloor + 1, ratioFloor / (ratio + 2), false}} {
		v := newVerification(Options{})
		v.compressed = &c.compressed
		b := &boundedReader{r: strings.NewReader("x"), v: v, n: c.unpacked - 1}
		if _, err := b.Read(make([]byte, 1)); (err == nil) != c.good {
			t.Errorf("%d bytes of %d: %v", c.unpacked, c.compressed, err)
		}
	}
	padded := foreignFiles(testKey("k"))
	padded["padding"] = strings.Repeat("\x00", 2<<20)
	sayFaults(t, "much that shrinks well", judge(t, compressed(t, tarOfFiles(t, membersOf(padded)...)), Options{}))
}

// Small files may have as many bytes as allowed. The attestation, which has a line for each file,
// may have more.
func TestBoundsOfSmallFiles(t *testing.T) {
	const most = 256 << 10
	key := testKey("k")
	manifest := func(size int) []byte {
		files := foreignFiles(key)
		files[manifestFile] += strings.Repeat(" ", size-len(files[manifestFile]))
		return aivstest.Gzip(t, tarOfFiles(t, membersOf(files)...))
	}
	sayFaults(t, "longest manifest", judge(t, manifest(most), Options{}))
	sayFaults(t, "longer manifest", judge(t, manifest(most+1), Options{}), "manifest.json: more than 262144 bytes")
	attested := foreignFiles(key)
	attested[attestationFile] = envelopeOf(key, attested, `{"_type":"`+statementType+`","subject":[%s]}`, strings.TrimSpace) + strings.Repeat(" ", most)
	sayFaults(t, "long attestation", judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(attested)...)), Options{}))
	attested[signatureName] = "# Ed25519 signing not available\n"
	sayFaults(t, "attestation of an unsigned bundle", judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(attested)...)), Options{}),
		attestationFile+": the main signature is missing or wrong")
	session := `{"verified":false,"recommended_action":"deny","traces":{"total":3,"violations":null,"findings":null},"finding_counts":null}`
	for size, read := range map[int]bool{most: true, most + 1: false} {
		in := sampleInput(1)
		in.Members = append([]Member{{Name: SessionMember, Data: []byte(session + strings.Repeat(" ", size-len(session)))}}, in.Members...)
		if report := judge(t, build(t, in, key).Bytes, Options{}); !report.Intact || (report.Verdict != nil) != read {
			t.Errorf("a verdict of %d bytes: %+v, %+v", size, report.Verdict, report.Faults)
		}
		want := "Verdict recorded inside: not read, since session.json is larger than 262144 bytes."
		if read {
			want = "Verdict recorded inside: DENY (0 violations, 0 findings)."
		}
		bundle := build(t, in, key).Bytes
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		writeFile(t, file, bundle)
		if said, page := bothSay(t, bundle), browse(t, file, "").Verdict; !strings.HasSuffix(said, want) || page != want {
			t.Errorf("a verdict of %d bytes: Go and Python say %q, the page %q", size, said, page)
		}
	}
	first := append([]Member{{Name: SessionMember, Data: []byte(session)}}, membersOf(foreignFiles(key))...)
	sayFaults(t, "a verdict before the log", judge(t, aivstest.Gzip(t, tarOfFiles(t, first...)), Options{}))
}

// Only the first of the data after the end of an archive is reported.
func TestDataAfterTheArchive(t *testing.T) {
	content := append(tarOfFiles(t, membersOf(foreignFiles(testKey("k")))...), 'x')
	sayFaults(t, "twice", judge(t, append(aivstest.Gzip(t, content), 'x'), Options{}), "archive: after its last entry: data that is not padding")
	if err := onlyZeros(io.MultiReader(strings.NewReader("\x00"), errorReader{})); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The numbers in row 1 are within bounds that every JSON reader represents exactly.
func TestBoundsOfTheOpening(t *testing.T) {
	row, err := openingOf(t, sampleInput(1), testKey("k")).row()
	if err != nil {
		t.Fatal(err)
	}
	const at, size = `"exported_at":"2026-03-14T15:30:45Z"`, `"bytes":16`
	for _, c := range []struct {
		old, with string
		good      bool
	}{
		{at, at, true},
		{at, `"exported_at":"1970-01-01T00:00:00Z"`, true},
		{at, `"exported_at":"1969-12-31T23:59:59Z"`, false},
		{at, `"exported_at":"2026-03-14T15:30:45.000Z"`, false},
		{at, `"exported_at":"2026-13-14T15:30:45Z"`, false},
		{`"part":2`, `"part":9007199254740991`, true},
		{`"part":2`, `"part":9007199254740992`, false},
		{`"part":2`, `"part":0`, false},
		{size, `"bytes":9007199254740991`, true},
		{size, `"bytes":9007199254740992`, false},
		{size, `"bytes":-1`, false},
		{`"name":"cards/c1.json",` + size + `,"sha256":"`, `"name":"cards/c1.json",` + size + `,"sha256":"0`, false},
	} {
		if !bytes.Contains([]byte(row.InputsJSON), []byte(c.old)) {
			t.Fatalf("no %s in %s", c.old, row.InputsJSON)
		}
		if _, err := parseOpening(strings.Replace(row.InputsJSON, c.old, c.with, 1)); (err == nil) != c.good {
			t.Errorf("%s: %v", c.with, err)
		}
	}
}
