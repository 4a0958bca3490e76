package aivs

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// unchecked returns a bundle that the builder makes without checking its input.
func unchecked(t *testing.T, spoil func(*Input)) []byte {
	t.Helper()
	in := sampleInput(2)
	spoil(in)
	var content bytes.Buffer
	if _, err := write(&content, in, testKey("k")); err != nil {
		t.Fatal(err)
	}
	return aivstest.Gunzip(t, content.Bytes())
}

// resigned returns an archive of our own dialect whose files were edited, with a new attestation.
// edit returns the files, and the files that the attestation covers.
func resigned(t *testing.T, content []byte, edit func([]Member) (files, signed []Member)) []byte {
	t.Helper()
	files := entries(t, content)
	v := newVerification(Options{})
	v.compressed = new(int64)
	*v.compressed = int64(len(content))
	v.untar(bytes.NewReader(content))
	o := &Opening{PreviousBundleHash: hexSHA256([]byte("before"))}
	files, signed := edit(files[:len(files)-1]) // the last is the attestation
	var subjects []attested
	for _, m := range signed {
		subjects = append(subjects, attested{m.Name, hexSHA256(m.Data)})
	}
	about := o.predicate(v.log.chain.Rows(), v.log.chain.Hash())
	about.SessionID = v.log.session
	payload, err := payloadOf(subjects, about)
	if err != nil {
		t.Fatal(err)
	}
	text, err := attest(testKey("k"), payload)
	if err != nil {
		t.Fatal(err)
	}
	return tarOfFiles(t, append(slices.Clone(files), Member{Name: attestationFile, Data: text})...)
}

// both edits the files and returns the result also as the files to attest.
func both(edit func([]Member) []Member) func([]Member) (files, signed []Member) {
	return func(files []Member) ([]Member, []Member) {
		files = edit(files)
		return files, files
	}
}

func without(name string) func([]Member) []Member {
	return func(files []Member) []Member {
		return slices.DeleteFunc(files, func(m Member) bool { return m.Name == name })
	}
}

func inFile(name, old, with string) func([]Member) []Member {
	return func(files []Member) []Member {
		for i := range files {
			if files[i].Name == name {
				files[i].Data = bytes.Replace(files[i].Data, []byte(old), []byte(with), 1)
			}
		}
		return files
	}
}

// The two verifiers give the same answer where they once differed; docs/BUNDLES.md lists these
// rules.
func TestTwoVerifiersOneAnswer(t *testing.T) {
	leave := func(*Row) {}
	whole := reforged(t, "", "", leave)
	named := func(name string) []byte {
		return unchecked(t, func(in *Input) { in.Members[2].Name = name })
	}
	listing := fmt.Sprintf(`{"name":"%s","bytes":%d,"sha256":"%s"},`, verifierFile, len(verifier), hexSHA256(verifier))
	keep := func(files []Member) []Member { return files }
	other := bytes.Replace(verifier, []byte("python3"), []byte("python4"), 1)
	otherListing := fmt.Sprintf(`{"name":"%s","bytes":%d,"sha256":"%s"},`, verifierFile, len(other), hexSHA256(other))
	cases := map[string]struct {
		content []byte
		want    string // of the first fault; "": there is none
	}{
		"as it is":                 {whole, ""},
		"signed again":             {resigned(t, whole, both(keep)), ""},
		"name that is hidden":      {named(".x"), "row 1"},
		"name with a hidden part":  {named("cards/.x"), "row 1"},
		"name with a space":        {named("a b"), "row 1"},
		"name of the draft's":      {named("cards/" + previousFile), "row 1"},
		"name of the draft's, too": {named("Manifest.json"), "archive"},
		"name twice, in capitals":  {named("Traces.jsonl"), "archive"},
		"part beyond 2^53":         {unchecked(t, func(in *Input) { in.Part = 1 << 53 }), "row 1"},
		"part beyond 2^63":         {reforged(t, `"part":2`, `"part":9223372036854775808`, leave), "row 1"},
		"no agent, said in words": {resigned(t, reforged(t, `"agent_id":"agent:7"`, `"agent_id":""`, leave),
			both(inFile(manifestFile, `  "trace_count"`, "  \"agent_id\": \"\",\n  \"trace_count\""))), "row 1"},
		"files signed for in another order": {resigned(t, whole, func(files []Member) ([]Member, []Member) {
			other := slices.Clone(files)
			slices.Reverse(other)
			return files, other
		}), attestationFile},
		"a file signed for twice":   {resigned(t, whole, func(files []Member) ([]Member, []Member) { return files, append(slices.Clone(files), files[0]) }), attestationFile},
		"a file not signed for":     {resigned(t, whole, func(files []Member) ([]Member, []Member) { return files, files[1:] }), attestationFile},
		"no verify.py":              {resigned(t, whole, both(without(verifierFile))), verifierFile},
		"no verify.py, none listed": {resigned(t, reforged(t, listing, "", leave), both(without(verifierFile))), "row 1"},
		"verify.py not listed":      {reforged(t, listing, "", leave), "row 1"},
		"another verify.py":         {resigned(t, whole, both(inFile(verifierFile, "python3", "python4"))), verifierFile},
		"another verify.py, listed": {resigned(t, reforged(t, listing, otherListing, leave), both(inFile(verifierFile, "python3", "python4"))), verifierFile},
		"no predecessor's digest":   {resigned(t, whole, both(without(previousFile))), previousFile},
		"predecessor elsewhere": {resigned(t, whole, both(func(files []Member) []Member {
			at := slices.IndexFunc(files, func(m Member) bool { return m.Name == previousFile })
			return append(without(previousFile)(slices.Clone(files)), files[at])
		})), ""}, // checked below
	}
	place, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		c := cases[name]
		report := judge(t, aivstest.Gzip(t, c.content), Options{})
		if name == "predecessor elsewhere" {
			if report.Intact || report.Faults[0].Where != archivePlace {
				t.Errorf("%s: %+v", name, report.Faults)
			}
		} else if report.Intact != (c.want == "") || c.want != "" && report.Faults[0].Where != c.want {
			t.Errorf("%s: %+v", name, report.Faults)
		}
		unpackInto(t, filepath.Join(place, name), c.content)
	}
	for i, line := range judgeAll(t, place, len(names)) {
		want := cases[names[i]].want
		if names[i] == "predecessor elsewhere" {
			want = attestationFile
		}
		if strings.HasPrefix(line, "0 ") != (want == "") || want != "" && !strings.Contains(line, "FAIL  "+want) {
			t.Errorf("%s: verify.py reports %s, want %s", names[i], line, want)
		}
	}
}

// A key of small order accepts a signature that anyone can make.
func TestKeysOfSmallOrderAreRefused(t *testing.T) {
	var encodings []string
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000", "0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		b, err := hex.DecodeString(y)
		if err != nil {
			t.Fatal(err)
		}
		b[31] |= 0x80
		encodings = append(encodings, y, hex.EncodeToString(b))
	}
	forgedSignature := base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 63)...))
	place := t.TempDir()
	for i, key := range encodings {
		files := foreignFiles(testKey("k"))
		files[keyFile] = keyComment + " " + key + "\n"
		lines := strings.SplitAfter(files[signatureName], "\n")
		files[signatureName] = lines[0] + "signature:" + forgedSignature + "\n"
		content := tarOfFiles(t, membersOf(files)...)
		report := judge(t, aivstest.Gzip(t, content), Options{})
		if report.Intact || report.Faults[0].Where != keyFile || !strings.Contains(report.Faults[0].Message, "small order") {
			t.Errorf("%s: %+v", key, report.Faults)
		}
		if _, err := ParseKey(key); err == nil {
			t.Errorf("%s is accepted as a pinned key", key)
		}
		unpackInto(t, filepath.Join(place, fmt.Sprintf("%02d", i)), content)
	}
	for i, line := range judgeAll(t, place, len(encodings)) {
		if !strings.Contains(line, "FAIL  public_key.pem: a key of small order") {
			t.Errorf("%s: verify.py reports %s", encodings[i], line)
		}
	}
	good := publicOf(testKey("k"))
	if SmallOrder(good) || SmallOrder(nil) {
		t.Error("a valid key counts as one of small order")
	}
	if passed, output := python(t, place, "--key", encodings[2]); passed || !strings.Contains(output, "--key: want") {
		t.Errorf("pinned: %s", output)
	}
}
