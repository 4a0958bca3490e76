package aivs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"errors"
	"flag"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

var exhaustive = flag.Bool("exhaustive", false, "flip every byte of a bundle, not only some")

// Flipping any byte of the uncompressed content is detected when the key is pinned. Without
// -exhaustive only some bytes are tried, one bit of each: fewer of verify.py, which one digest
// covers.
func TestFlippingAnyByteIsRefused(t *testing.T) {
	key := testKey("k")
	content := aivstest.Gunzip(t, build(t, sampleInput(2), key).Bytes)
	options := Options{Keys: []ed25519.PublicKey{publicOf(key)}}
	if report := judge(t, aivstest.Gzip(t, content), options); !report.Intact {
		t.Fatalf("%+v", report)
	}
	script := bytes.Index(content, verifier)
	step, stepInScript := 21, 315
	if *exhaustive {
		step, stepInScript = 1, 1
	}
	for at := range content {
		inScript := at >= script && at < script+len(verifier)
		if at%step != 0 || inScript && at%stepInScript != 0 {
			continue
		}
		content[at] ^= 1 << (at % 8)
		if report := judgeContent(t, content, options); report.Intact {
			t.Errorf("verified although byte %d was flipped", at)
		}
		content[at] ^= 1 << (at % 8)
	}
}

// judgeContent is judge without the gzip layer.
func judgeContent(t *testing.T, content []byte, options Options) *Report {
	t.Helper()
	v := newVerification(options)
	size := int64(len(content))
	v.compressed, v.header = &size, gzipHeader
	v.untar(bytes.NewReader(content))
	return v.conclude()
}

// tarOf writes headers with their contents, canonical or not.
func tarOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("a"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileArchives(t *testing.T) {
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}
	}
	link := func(kind byte) tar.Header {
		return tar.Header{Name: root + "x", Typeflag: kind, Linkname: "/etc/passwd"}
	}
	folder := tar.Header{Name: root + "d/", Typeflag: tar.TypeDir}
	big := file(root + manifestFile)
	big.Size = 300 << 10
	cases := map[string]struct {
		content []byte
		want    string
	}{
		"absolute":       {tarOf(t, file("/session_proof/x")), "not a plain path"},
		"climbing":       {tarOf(t, file("session_proof/../../x")), "not a plain path"},
		"elsewhere":      {tarOf(t, file("x")), "not a plain path"},
		"backslash":      {tarOf(t, file(`session_proof/..\x`)), "not a plain path"},
		"symbolic link":  {tarOf(t, link(tar.TypeSymlink)), "not a plain file"},
		"hard link":      {tarOf(t, link(tar.TypeLink)), "not a plain file"},
		"device":         {tarOf(t, link(tar.TypeChar)), "not a plain file"},
		"twice":          {tarOf(t, file(root+"x"), file(root+"x")), "same name"},
		"twice by case":  {tarOf(t, file(root+"x"), file(root+"X")), "same name"},
		"twice by dot":   {tarOf(t, file(root+"x"), file("./"+root+"x")), "same name"},
		"big small file": {tarOf(t, big), "more than"},
		"many files":     {tarOf(t, file(root+"a"), file(root+"b"), file(root+"c")), "more than 2 files"},
		"long line":      {tarOf(t, tar.Header{Name: root + logFile, Typeflag: tar.TypeReg, Size: 3 << 20}), "longer than"},
		"many bytes":     {tarOf(t, tar.Header{Name: root + "x", Typeflag: tar.TypeReg, Size: 5 << 20}), "more than"},
		"cut short":      {tarOf(t, file(root+"x"))[:512], "unexpected EOF"},
		"after the end":  {append(tarOf(t, file(root+"x")), 'x'), "not padding"},
		"many folders":   {tarOf(t, folder, folder, folder), "more than 2 files"},
		"long name":      {tarOf(t, file(root+strings.Repeat("x", 2000))), "a name longer than"},
		"no log":         {tarOf(t, file(root+"x")), "missing"},
		"not a tar":      {bytes.Repeat([]byte("x"), 2000), "invalid tar header"},
	}
	for name, c := range cases {
		options := Options{limits: limits{bytes: 4 << 20, members: 2, line: 2 << 20}}
		report := judge(t, aivstest.Gzip(t, c.content), options)
		if report.Intact || len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Message, c.want) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

func TestHostileCompression(t *testing.T) {
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	big := tar.Header{Name: root + "x", Typeflag: tar.TypeReg, Size: ratioFloor + 1<<20}
	if _, err := z.Write(tarOf(t, big)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := build(t, sampleInput(1), testKey("k")).Bytes
	cases := map[string]struct {
		bundle []byte
		want   string
	}{
		"bomb":          {bomb.Bytes(), "times its size"},
		"no gzip":       {[]byte("hello"), "not a gzip file"},
		"empty":         {nil, "not a gzip file"},
		"trailing byte": {append(bytes.Clone(whole), 0), "follows the end"},
		"second member": {append(bytes.Clone(whole), whole...), "follows the end"},
		"cut short":     {whole[:len(whole)-4], "unexpected EOF"},
	}
	for name, c := range cases {
		report := judge(t, c.bundle, Options{})
		if report.Intact || len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Message, c.want) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

// Lines of traces that no row needs take no memory: some kilobytes may expand to millions of
// them.
func TestHostileTracesAreNotKept(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const size = 8 << 20
	if err := w.WriteHeader(header(TracesMember, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte{'\n'}, size)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	judgeContent(t, b.Bytes(), Options{})
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > size/2 {
		t.Errorf("%d bytes taken for %d empty lines", taken, size)
	}
}

// A source that cannot be read is an error, not a report.
func TestReadErrorIsNotAFault(t *testing.T) {
	whole := build(t, sampleInput(1), testKey("k")).Bytes
	disk := errors.New("disk")
	for _, at := range []int{0, 5, 200, len(whole)} {
		r := io.MultiReader(bytes.NewReader(whole[:at]), iotest.ErrReader(disk))
		if report, err := Verify(r, Options{}); !errors.Is(err, disk) || report != nil {
			t.Errorf("error after %d bytes: report %v, error %v", at, report, err)
		}
	}
}

// Archives of other tar writers are accepted: a leading "./", directory entries, padding to ten
// kilobytes.
func TestOtherTarWritersAreAccepted(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"./", "./session_proof/"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	chain := NewChain()
	row := Row{SessionID: "s", ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}"}
	chain.Link(&row)
	files := []Member{{Name: manifestFile, Data: []byte(`{"session_id":"s","action_count":1,"chain_hash":"` + chain.Hash() + `"}`)},
		{Name: logFile, Data: row.AppendJSON(nil)}}
	for _, f := range files {
		h := header(f.Name, int64(len(f.Data)))
		h.Name = "./" + h.Name
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.Write(make([]byte, 10240-b.Len()%10240))
	if report := judge(t, aivstest.Gzip(t, b.Bytes()), Options{}); !report.Intact || report.Dialect != DialectDraft {
		t.Errorf("%+v", report)
	}
}

func TestNineFieldDialectIsNamed(t *testing.T) {
	row := `{"id":1,"session_id":"s","action_type":"a","tool_name":"t","inputs_json":"","outputs_json":"","cost_cents":0,` +
		`"error":"","timestamp":1.5,"prev_hash":"","row_hash":"","inputs_digest":"x","outputs_digest":"y"}`
	check := newLogCheck(nil)
	check.line([]byte(row), true)
	if check.fault == nil || check.dialect() != DialectConduit9 {
		t.Errorf("dialect %s, fault %v", check.dialect(), check.fault)
	}
}

// The gzip layer of a bundle of our own dialect must be the one that we write: a header without
// time, name or further fields, one member, and no empty blocks.
func TestGzipLayerIsCanonical(t *testing.T) {
	whole := build(t, sampleInput(1), testKey("k")).Bytes
	content := aivstest.Gunzip(t, whole)
	header := func(edit func(*gzip.Header)) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		edit(&z.Header)
		if _, err := z.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var blocks bytes.Buffer
	z := gzip.NewWriter(&blocks)
	for range 200_000 { // five bytes each
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	const again = "compressed again after it was made"
	for name, c := range map[string]struct {
		bundle []byte
		want   string
	}{
		"as it is":          {whole, ""},
		"another level":     {header(func(*gzip.Header) {}), ""}, // the same header: see sha256 and tar_sha256 in BUNDLES.md
		"a time":            {header(func(h *gzip.Header) { h.ModTime = time.Unix(1, 0) }), again},
		"another system":    {header(func(h *gzip.Header) { h.OS = 3 }), again},
		"a further field":   {header(func(h *gzip.Header) { h.Extra = make([]byte, 60_000) }), again},
		"a name":            {header(func(h *gzip.Header) { h.Name = "x" }), again},
		"a comment":         {header(func(h *gzip.Header) { h.Comment = "x" }), again},
		"the former header": {append([]byte(formerGzipHeader), whole[10:]...), again},
		"empty blocks":      {blocks.Bytes(), again},
		"two members":       {append(bytes.Clone(whole), aivstest.Gzip(t, nil)...), "follows the end"},
	} {
		report := judge(t, c.bundle, Options{})
		if report.Intact != (c.want == "") || c.want != "" && !strings.Contains(report.Faults[0].Message, c.want) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
		if report.Intact && (report.TarSHA256 != hexSHA256(content) || report.SHA256 != hexSHA256(c.bundle)) {
			t.Errorf("%s: %s, %s", name, report.TarSHA256, report.SHA256)
		}
	}
	// The gzip layer of another generator is not restricted.
	theirs := aivstest.Gzip(t, tarOfFiles(t, membersOf(foreignFiles(testKey("k")))...))
	theirs[9] = 3
	if report := judge(t, theirs, Options{}); !report.Intact {
		t.Errorf("another generator's: %+v", report.Faults)
	}
}
