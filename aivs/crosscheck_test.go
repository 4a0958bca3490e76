package aivs

import (
	"archive/tar"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// sayFaults requires that the faults of a report, each as "where: message", begin with the wanted
// texts.
func sayFaults(t *testing.T, name string, report *Report, want ...string) {
	t.Helper()
	var got []string
	for _, f := range report.Faults {
		got = append(got, f.Where+": "+f.Message)
	}
	same := slices.EqualFunc(got, want, strings.HasPrefix)
	if !same || report.Intact != (len(want) == 0) {
		t.Errorf("%s: faults %q, want %q", name, got, want)
	}
}

// Each file of a bundle of our own dialect is checked against row 1 and the log. Everything was
// signed again, so no other check detects the change.
func TestFaultsOfOurOwnBundles(t *testing.T) {
	leave := func(*Row) {}
	whole := reforged(t, "", "", leave)
	edit := func(edits ...func([]Member) []Member) []byte {
		return resigned(t, whole, both(func(files []Member) []Member {
			for _, e := range edits {
				files = e(files)
			}
			return files
		}))
	}
	swapped := func(files []Member) []Member {
		at := slices.IndexFunc(files, func(m Member) bool { return m.Name == VerdictsMember })
		files[at], files[at+1] = files[at+1], files[at]
		return files
	}
	added := func(files []Member) []Member { return append(files, Member{Name: "notes.txt", Data: []byte("x")}) }
	const sealed = "row 4: a seal row has no contents, and the time of row 1"
	const repacked = "archive: repacked after it was made: "
	for name, c := range map[string]struct {
		content []byte
		want    []string
	}{
		"as it is":               {whole, nil},
		"manifest gone":          {edit(without(manifestFile)), []string{"manifest.json: missing", "manifest.json: changed"}},
		"manifest not JSON":      {edit(inFile(manifestFile, "{", "[")), []string{"manifest.json: ", "manifest.json: changed"}},
		"manifest edited":        {edit(inFile(manifestFile, "Plumbline", "plumbline")), []string{"manifest.json: changed: not what row 1 says"}},
		"key file spaced":        {edit(inFile(keyFile, "# Ed", "#  Ed")), []string{"public_key.pem: " + saysNotOurs}},
		"signature file spaced":  {edit(inFile(signatureName, "signature:", "signature: ")), []string{"session_sig.txt: " + saysNotOurs}},
		"predecessor edited":     {edit(inFile(previousFile, "a", "b")), []string{"previous_bundle_hash.txt: changed: not what row 1 says"}},
		"another verify.py":      {edit(inFile(verifierFile, "python3", "python2")), []string{"verify.py: not a verify.py that", "verify.py: changed"}},
		"card gone":              {edit(without("cards/c1.json")), []string{"cards/c1.json: missing, though row 1 lists it"}},
		"card edited":            {edit(inFile("cards/c1.json", "c1", "c2")), []string{"cards/c1.json: changed: not the file that was sealed"}},
		"trace edited":           {edit(inFile(TracesMember, `"t1"`, `"t9"`)), []string{"traces.jsonl: line 2 was changed: it is not the trace that row 3 records"}},
		"trace added":            {edit(longerTraces), []string{"traces.jsonl: changed: not the file that was sealed"}},
		"trace and card edited":  {edit(inFile(TracesMember, `"t1"`, `"t9"`), inFile("cards/c1.json", "c1", "c2")), []string{"traces.jsonl: line 2", "cards/c1.json: changed"}},
		"a file more":            {edit(added), []string{"notes.txt: not a file of this bundle: row 1 does not list it"}},
		"two files swapped":      {edit(swapped), []string{repacked + "files are missing, or not in the order"}},
		"swapped, and one more":  {edit(swapped, added), []string{"notes.txt: not a file"}},
		"another key id":         {reforged(t, `"key_id":"`, `"key_id":"0`, leave), []string{"row 1: its key_id is not that of public_key.pem"}},
		"too many traces":        {reforged(t, `"trace_count":2`, `"trace_count":3`, leave), []string{"row 1: its trace_count is 3, there are 2 rows"}},
		"no seal":                {relogged(t, func(l []string) []string { return l[:3] }, "\n"), []string{"row 3: the last row is not a seal", "row 1: its trace_count is 2, there are 1 rows"}},
		"a seal with inputs":     {reforged(t, "", "", ofSeal(func(r *Row) { r.InputsJSON = "[]" })), []string{sealed}},
		"a seal with outputs":    {reforged(t, "", "", ofSeal(func(r *Row) { r.OutputsJSON = "" })), []string{sealed}},
		"a seal with an error":   {reforged(t, "", "", ofSeal(func(r *Row) { r.Error = "x" })), []string{sealed}},
		"a seal that costs":      {reforged(t, "", "", ofSeal(func(r *Row) { r.CostCents = 1 })), []string{sealed}},
		"a seal of another time": {reforged(t, "", "", ofSeal(func(r *Row) { r.Timestamp++ })), []string{sealed}},
		"an open row that failed": {reforged(t, "", "", func(r *Row) {
			if r.ActionType == ActionOpen {
				r.Error = "x"
			}
		}), []string{"row 1: " + saysNotOurs + ", or of another session"}},
		"empty line":       {relogged(t, inLine(2, "{", "\n{"), "\n"), []string{"row 3: an empty line stands before it"}},
		"empty line first": {relogged(t, inLine(0, "{", "\n{"), "\n"), []string{"row 1: " + saysNotOurs}},
		"another space":    {relogged(t, inLine(1, `{"id"`, `{ "id"`), "\n"), []string{"row 2: " + saysNotOurs}},
		"no last line end": {relogged(t, func(l []string) []string { return l }, ""), []string{"row 4: " + saysNotOurs}},
		"other headers":    {withMode(t, whole, 0o600), []string{repacked + "its entries, their order or their headers"}},
	} {
		report := judge(t, aivstest.Gzip(t, c.content), Options{})
		report.Faults = slices.DeleteFunc(report.Faults, func(f Fault) bool { return f.Where == attestationFile })
		sayFaults(t, name, report, c.want...)
	}
	invalid := edit(inFile(signatureName, "signature:A", "signature:B"), inFile(signatureName, "signature:", "signature:A"))
	if report := judge(t, aivstest.Gzip(t, invalid), Options{}); report.Signature != SignatureInvalid || len(report.Faults) != 1 || report.Faults[0].Where != signatureName {
		t.Errorf("want an invalid signature as the only fault: %+v", report.Faults)
	}
}

// ofSeal changes the last row.
func ofSeal(change func(*Row)) func(*Row) {
	return func(r *Row) {
		if r.ActionType == ActionSeal {
			change(r)
		}
	}
}

// inLine changes a line of the log.
func inLine(line int, old, with string) func([]string) []string {
	return func(lines []string) []string {
		lines[line] = strings.Replace(lines[line], old, with, 1)
		return lines
	}
}

// A row that never matched its trace is named, whichever check detects it.
func TestRowsThatNeverMatchedTheirTraces(t *testing.T) {
	in := sampleInput(3)
	in.Members[0].Data = bytes.Replace(in.Members[0].Data, []byte("t1"), []byte("t9"), 1)
	bundle := build(t, in, testKey("k")).Bytes
	sayFaults(t, "as built", judge(t, bundle, Options{}), "row 3: its trace_sha256 is not that of line 2 of traces.jsonl")
	miscounted := withFile(t, bundle, manifestFile, func(text []byte) []byte {
		return bytes.Replace(text, []byte(`"action_count": 5`), []byte(`"action_count": 6`), 1)
	})
	if faults := judge(t, miscounted, Options{}).Faults; faults[0].Where != "row 3" || !strings.HasPrefix(faults[1].Message, "action_count is 6") {
		t.Errorf("wrong counts: %+v", faults)
	}
}

func longerTraces(files []Member) []Member {
	for i := range files {
		if files[i].Name == TracesMember {
			files[i].Data = append(bytes.Clone(files[i].Data), "{}\n"...)
		}
	}
	return files
}

// withMode rewrites an archive with another mode for its files.
func withMode(t *testing.T, content []byte, mode int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range entries(t, content) {
		h := header(m.Name, int64(len(m.Data)))
		h.Mode = mode
		if err := w.WriteHeader(h); err != nil {
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

// The text in place of a signature in an unsigned bundle of our own dialect has one form, too. It
// names a previous bundle only where row 1 does.
func TestFaultsOfUnsignedBundles(t *testing.T) {
	in := sampleInput(2)
	in.PreviousBundleSHA256, in.Members = "", nil
	files := entries(t, aivstest.Gunzip(t, build(t, in, nil).Bytes))
	report := judge(t, aivstest.Gzip(t, tarOfFiles(t, files...)), Options{})
	sayFaults(t, "as it is", report)
	if !slices.Contains(report.Skipped, saysNoTraces) {
		t.Errorf("skipped %q", report.Skipped)
	}
	for name, c := range map[string]struct {
		edit func([]Member) []Member
		want []string
	}{
		"key file":          {inFile(keyFile, "No signing", "no signing"), []string{"public_key.pem: " + saysNotOurs}},
		"signature file":    {inFile(signatureName, "# Ed", "#  Ed"), []string{"session_sig.txt: " + saysNotOurs}},
		"no key file":       {without(keyFile), []string{"public_key.pem: missing"}},
		"no signature file": {without(signatureName), []string{"session_sig.txt: missing"}},
		"an empty predecessor": {func(f []Member) []Member { return append(f, Member{Name: previousFile}) },
			[]string{"previous_bundle_hash.txt: changed", "previous_bundle_hash.txt: not a file of this bundle"}},
	} {
		edited := aivstest.Gzip(t, tarOfFiles(t, c.edit(slices.Clone(files))...))
		sayFaults(t, name, judge(t, edited, Options{}), c.want...)
		directory := unpack(t, edited)
		_, output := python(t, directory)
		sayTheSame(t, directory, output, nil)
	}
}

// traces.jsonl has exactly one line for each row.
func TestMoreTracesThanRows(t *testing.T) {
	in := sampleInput(2)
	in.Members[0].Data = append(in.Members[0].Data, "{}\n"...)
	sayFaults(t, "a line more", judge(t, build(t, in, testKey("k")).Bytes, Options{}), "traces.jsonl: 3 lines for 2 rows")
}

// The gzip layer may be a little longer than the archive, as it is for incompressible data.
func TestLongestGzipLayer(t *testing.T) {
	content := aivstest.Gunzip(t, build(t, sampleInput(2), testKey("k")).Bytes)
	most := int64(len(content)) + int64(len(content))>>12 + 1024
	for size, want := range map[int64][]string{most: nil, most + 1: {"archive: compressed again after it was made: "}} {
		v := newVerification(Options{})
		v.compressed, v.header = &size, gzipHeader
		v.untar(bytes.NewReader(content))
		sayFaults(t, "size", v.conclude(), want...)
	}
	former := read(t, vectorsAt, "ours-signed.tar.gz") // by an earlier version, with its gzip header
	sayFaults(t, "earlier version", judge(t, former, Options{}))
	former = append([]byte(gzipHeader), former[len(gzipHeader):]...)
	sayFaults(t, "earlier version, our header", judge(t, former, Options{}), "archive: compressed again after it was made: its gzip header")
}

// The small files of the draft are checked against the log (draft 4.3, 5.2, 5.4).
func TestFaultsOfForeignBundles(t *testing.T) {
	key, digest := testKey("k"), hexSHA256([]byte("before"))
	foreign := func(name, old, with string) []byte {
		files := foreignFiles(key)
		if old == "" {
			files[name] = with
		} else {
			files[name] = strings.Replace(files[name], old, with, 1)
		}
		return tarOfFiles(t, membersOf(files)...)
	}
	const missing = "manifest.json: session_id, chain_hash or action_count is missing"
	const empty = "session_sig.txt: the signature or the chain_hash it is over is empty"
	for name, c := range map[string]struct {
		content []byte
		want    []string
	}{
		"as it is":                {foreign(manifestFile, "{", "{"), nil},
		"no session":              {foreign(manifestFile, "session_id", "session"), []string{missing}},
		"no chain hash":           {foreign(manifestFile, "chain_hash", "chain"), []string{missing}},
		"no count":                {foreign(manifestFile, "action_count", "count"), []string{missing}},
		"another chain hash":      {foreign(manifestFile, `"chain_hash":"`, `"chain_hash":"0`), []string{"manifest.json: chain_hash is "}},
		"another count":           {foreign(manifestFile, ":3", ":4"), []string{"manifest.json: action_count is 4, the log has 3 rows"}},
		"a count in words":        {foreign(manifestFile, ":3", `:"3"`), []string{"manifest.json: action_count is "}},
		"another session":         {foreign(manifestFile, `"sess-é"`, `"sess"`), []string{"manifest.json: session_id is "}},
		"blanks at the signature": {foreign(signatureName, "signature:", "signature: \t"), nil},
		"no signature behind it":  {foreign(signatureName, "", "chain_hash:"+chainOf(t)+"\nsignature:\n"), []string{empty}},
		"no chain hash behind it": {foreign(signatureName, "", "chain_hash:\n"), []string{empty}},
		"a signature of nothing":  {foreign(signatureName, "chain_hash", "hash"), []string{empty}},
		"a predecessor":           {foreign(previousFile, "", digest+"\n"), nil},
		"no row":                  {foreign(logFile, `{"row_hash"`, `["row_hash"`), []string{"row 1: "}},
		"no key":                  {foreign(keyFile, "", "# No signing key configured\n"), []string{"public_key.pem: there is a signature but no key"}},
		"no digest":               {foreign(previousFile, "", digest[1:]), []string{"previous_bundle_hash.txt: not a SHA-256"}},
	} {
		report := judge(t, aivstest.Gzip(t, c.content), Options{})
		sayFaults(t, name, report, c.want...)
		if named := report.PreviousBundleHash != ""; named != (name == "a predecessor") || named && report.PreviousBundleHash != digest {
			t.Errorf("%s: predecessor %q", name, report.PreviousBundleHash)
		}
	}
	files := foreignFiles(key) // a session without actions
	files[logFile], files[manifestFile] = "", `{"session_id":"sess","action_count":0,"chain_hash":"`+NewChain().Hash()+`"}`
	files[signatureName] = string(signatureFile(key, NewChain().Hash()))
	report := judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(files)...)), Options{})
	if sayFaults(t, "no rows", report); report.SessionID != "sess" {
		t.Errorf("session %q", report.SessionID)
	}
}

// chainOf returns the chain hash of foreignFiles.
func chainOf(t *testing.T) string {
	t.Helper()
	hash, _, err := signatureLines([]byte(foreignFiles(testKey("k"))[signatureName]))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
