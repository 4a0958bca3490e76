package aivs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// withKind changes the kind of the first entry of an archive, and its name, which ends in a zero byte.
func withKind(content []byte, name string, kind byte) []byte {
	content = bytes.Clone(content)
	copy(content, name+"\x00")
	content[156] = kind
	copy(content[148:], "        ")
	sum := 0
	for _, c := range content[:512] {
		sum += int(c)
	}
	copy(content[148:], fmt.Sprintf("%06o\x00 ", sum))
	return content
}

// Some readers take the content of a directory for the next entries, and others skip it; some take a file whose name ends in a slash
// for a directory. So one archive could hold two bundles.
func TestArchivesOfTwoBundles(t *testing.T) {
	good, evil := tarOfFiles(t, membersOf(foreignFiles(testKey("k")))...), tarOfFiles(t, membersOf(foreignFiles(testKey("other")))...)
	first := tarOfFiles(t, append([]Member{{Name: "dd", Data: evil}}, membersOf(foreignFiles(testKey("k")))...)...)
	empty := tarOfFiles(t, append([]Member{{Name: "dd"}}, membersOf(foreignFiles(testKey("k")))...)...)
	for name, c := range map[string]struct {
		content []byte
		want    string // "" for an intact bundle
	}{
		"as it is":                           {good, ""},
		"a directory with content":           {withKind(first, root+"d/", '5'), "d/: not a plain file"},
		"the root with content":              {withKind(first, "./", '5'), "/: not a plain file"},
		"a file with the name of one":        {withKind(first, root+"d/", '0'), "d/: not a plain file"},
		"an empty one":                       {withKind(empty, root+"d/", '0'), "d/: not a plain file"},
		"an old directory with content":      {withKind(first, root+"d/", 0), "d/: not a plain file"},
		"an old directory":                   {withKind(empty, root+"d/", 0), ""},
		"a directory":                        {withKind(empty, root+"d/", '5'), ""},
		"an old file":                        {withKind(good, root+attestationFile, 0), ""},
		"a global extended header":           {withKind(empty, "g", 'g'), "g: not a plain file"},
		"the long name of a link's target":   {withKind(empty, "././@LongLink", 'K'), ""},
		"a file that lies in one piece":      {withKind(good, root+"x", '7'), "x: not a plain file"},
		"a name of the root's own directory": {withKind(empty, root, '5'), ""},
	} {
		if name == "an old file" {
			c.content = withKind(good, root+slices.Sorted(slices.Values([]string{logFile, manifestFile, keyFile, signatureName}))[0], 0)
		}
		report := agree(t, name, aivstest.Gzip(t, c.content), Options{})
		if report.Intact != (c.want == "") || c.want != "" && report.Faults[0].Line() != c.want {
			t.Errorf("%s: want %q: %+v", name, c.want, report.Faults)
		}
	}
}

// Names are UTF-8. Two that differ stay two, also those that are no UTF-8.
func TestNamesBeyondASCII(t *testing.T) {
	archive := func(names ...string) []byte {
		files := foreignFiles(testKey("k"))
		for _, name := range names {
			files[name] = "1"
		}
		if len(names) == 1 {
			files[attestationFile] = envelopeOf(testKey("k"), files, `{"_type": "`+statementType+`", "subject": [%s]}`, strings.TrimSpace)
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, m := range membersOf(files) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: root + m.Name, Size: int64(len(m.Data)), Mode: 0o644, Format: tar.FormatGNU}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(m.Data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, name := range []string{"ä.txt", "表/😀.json", strings.Repeat("ä", 300)} {
		if report := agree(t, name, aivstest.Gzip(t, archive(name)), Options{}); !report.CoversAll() {
			t.Errorf("%.20s: %+v", name, report)
		}
	}
	long := strings.Repeat("ä", (maxName-len(root))/2)
	for name, c := range map[string]struct {
		names  []string
		intact bool
	}{
		"as long as allowed": {[]string{long}, true}, "longer": {[]string{long + "ä"}, false},
		"in another case": {[]string{"Ä", "ä"}, true}, "with the Kelvin sign": {[]string{"\u212a", "k"}, true}, "with a dot": {[]string{"İ", "i"}, true}, "in ASCII": {[]string{"K", "k"}, false},
		"no UTF-8": {[]string{"a\xff", "a\xfe"}, true}, "as Latin-1 the same": {[]string{"\xe9", "é"}, true},
	} {
		content := archive(c.names...)
		if report := agree(t, name, aivstest.Gzip(t, content), Options{}); report.Intact != c.intact {
			t.Errorf("%s: %+v", name, report.Faults)
		}
		if name == "as long as allowed" || name == "longer" {
			continue // most file systems allow less
		}
		place := t.TempDir()
		unpackInto(t, place, content)
		if passed, output := python(t, filepath.Join(place, "session_proof")); passed != c.intact {
			t.Errorf("%s: %s", name, output)
		}
	}
}

// No directory can hold a file and a folder of the same name, so unpacking one of the two would fail, or remove the other.
func TestFileWithTheNameOfAFolder(t *testing.T) {
	for _, names := range [][]string{{"cards", "cards/c1.json"}, {"a/b/c", "a/B"}, {"manifest.json/x"}} {
		in := sampleInput(1)
		in.Members = in.Members[:1]
		foreign := foreignFiles(testKey("k"))
		for _, name := range names {
			in.Members, foreign[name] = append(in.Members, Member{Name: name, Data: []byte("1")}), "1"
		}
		if _, err := Build(in, testKey("k")); err == nil || !strings.Contains(err.Error(), "one of its folders has the name of a file") {
			t.Errorf("%q: the builder says %v", names, err)
		}
		report := agree(t, "foreign", aivstest.Gzip(t, tarOfFiles(t, membersOf(foreign)...)), Options{})
		if len(report.Faults) != 1 || report.Faults[0].Line() != "archive: a file has the name of a folder" {
			t.Errorf("%q: %+v", names, report.Faults)
		}
		list := `"members":[`
		for _, name := range names {
			list += fmt.Sprintf(`{"name":%q,"bytes":1,"sha256":"%064d"},`, name, 0)
		}
		verifierFirst := openingOf(t, in, testKey("k")).Members[0]
		listed := fmt.Sprintf(`{"name":"verify.py","bytes":%d,"sha256":"%s"},`, verifierFirst.Bytes, verifierFirst.SHA256)
		allSay(t, "own", reforged(t, `"members":[`+listed, `"members":[`+listed+strings.TrimPrefix(list, `"members":[`), func(*Row) {}), "row 1: not written as Plumbline writes it, or of another session")
	}
	place := t.TempDir() // as it can lie on a disk
	files := foreignFiles(testKey("k"))
	files["Cards"], files["cards/c1.json"] = "1", "1"
	for name, text := range files {
		writeFile(t, filepath.Join(place, name), []byte(text))
	}
	if passed, output := python(t, place); passed || !strings.Contains(output, "FAIL  archive: a file has the name of a folder\n") {
		t.Error(output)
	}
}

// Each of the draft's small files is bounded, also where nothing else is read of it.
func TestLargeFilesOfTheDraft(t *testing.T) {
	for _, name := range draftFiles[1:] {
		limit := 256 << 10
		if name == attestationFile {
			limit += 10_000 * (maxName + subjectFrame)
		}
		for _, size := range []int{limit, limit + 1} {
			files := foreignFiles(testKey("k"))
			files[signatureName] = "# Ed25519 signing not available\n"
			files[name] = files[name] + strings.Repeat("#", size-len(files[name]))
			content := tarOfFiles(t, membersOf(files)...)
			report := agree(t, name, compressed(t, content), Options{})
			place := t.TempDir()
			unpackInto(t, place, content)
			_, output := python(t, filepath.Join(place, "session_proof"))
			want := fmt.Sprintf("%s: more than %d bytes", name, limit)
			large := slices.ContainsFunc(report.Faults, func(f Fault) bool { return f.Line() == want })
			if large != (size > limit) || strings.Contains(output, "FAIL  "+want+"\n") != large {
				t.Errorf("%s of %d bytes: %+v\n%s", name, size, report.Faults, output)
			}
		}
	}
}
