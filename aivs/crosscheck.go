package aivs

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// checkManifest compares the manifest with the log (draft section 5.2).
func (v *verification) checkManifest() {
	r := v.report
	var m struct {
		SessionID   *string        `json:"session_id"`
		ActionCount jsontext.Value `json:"action_count"`
		ChainHash   *string        `json:"chain_hash"`
		AIVSVersion jsontext.Value `json:"aivs_version"`    // the draft's; its own generator does not write it
		Conduit     jsontext.Value `json:"conduit_version"` // that generator's
	}
	text, present := v.small[manifestFile]
	if !present {
		r.Fault(manifestFile, "missing")
		return
	}
	if err := readJSON(text, &m); err != nil {
		r.Fault(manifestFile, "%v", err)
		return
	}
	count, err := strconv.ParseInt(string(m.ActionCount), 10, 64)
	switch {
	case m.SessionID == nil || m.ChainHash == nil || m.ActionCount == nil:
		r.Fault(manifestFile, "session_id, chain_hash or action_count is missing")
	case *m.ChainHash != r.ChainHash:
		v.changed = true
		r.Fault(manifestFile, "chain_hash is %.80q, the log has %s", *m.ChainHash, r.ChainHash)
	case err != nil || count != r.Rows:
		v.changed = true
		r.Fault(manifestFile, "action_count is %.40s, the log has %d rows", m.ActionCount, r.Rows)
	case r.Rows > 0 && *m.SessionID != v.log.session:
		r.Fault(manifestFile, "session_id is %.80q, the rows have %.80q", *m.SessionID, v.log.session)
	case v.log.generator.gap != nil && m.AIVSVersion != nil && m.Conduit == nil:
		r.Faults = append(r.Faults, *v.log.generator.gap)
	}
	if r.SessionID == "" && m.SessionID != nil {
		r.SessionID = *m.SessionID
	}
}

// notOurs is the fault of text that has the right meaning in another form.
const notOurs = "not written as Plumbline writes it"

// checkOwn requires that every byte of a bundle of our own dialect is covered: by the rows'
// hashes, by the seal, by the open row's list, or by equality with what the builder writes.
func (v *verification) checkOwn(o *Opening) {
	r := v.report
	if v.log.sealed != r.Rows {
		r.Fault(fmt.Sprintf("row %d", r.Rows), "the last row is not a seal: rows were removed from the end")
	}
	v.checkSmallFiles(o)
	v.checkMembers(o)
	switch { // line i of traces.jsonl and row i+1
	case o.TraceCount != r.Rows-2:
		r.Fault("row 1", "its trace_count is %d, there are %d rows", o.TraceCount, r.Rows-2)
	case !v.log.traced:
		r.Skip("traces: the bundle carries none")
	case len(r.Faults) > 0: // an earlier fault already shows what was changed
	case v.log.badTrace > 0:
		r.Fault(fmt.Sprintf("row %d", v.log.badTrace+1), "its trace_sha256 is not that of line %d of %s", v.log.badTrace, TracesMember)
	case v.log.traceLines != len(v.log.traces):
		r.Fault(TracesMember, "%d lines for %d rows", v.log.traceLines, len(v.log.traces))
	}
	header := gzipHeader
	if former, _ := v.former(); former {
		header = formerGzipHeader
	}
	switch {
	case !v.canonical:
		r.Fault(archivePlace, "repacked after it was made: its entries, their order or their headers are not those that Plumbline writes")
	case v.header != header:
		r.Fault(archivePlace, "compressed again after it was made: its gzip header is not the one that Plumbline writes")
	case *v.compressed > v.unpacked+v.unpacked>>12+1024: // a compressor adds at most five bytes to 64 KiB
		r.Fault(archivePlace, "compressed again after it was made: %d bytes hold an archive of %d", *v.compressed, v.unpacked)
	}
}

// checkSmallFiles compares the draft's small files with their only accepted form: what the builder
// writes.
func (v *verification) checkSmallFiles(o *Opening) {
	r := v.report
	manifest, err := o.manifest(r.Rows, r.ChainHash)
	if err != nil || !bytes.Equal(manifest, v.small[manifestFile]) {
		r.Fault(manifestFile, "changed: not what row 1 says, or "+notOurs)
	}
	wantKey, wantSignature := publicKeyFile(nil), "chain_hash:"+r.ChainHash+"\n"+noSigning
	if r.Signature == SignatureValid {
		public, err := hex.DecodeString(r.PublicKey)
		if err != nil || o.KeyID != r.KeyID {
			v.changed = true
			r.Fault("row 1", "its key_id is not that of %s", keyFile)
		}
		wantKey, wantSignature = publicKeyFile(public), "chain_hash:"+r.ChainHash+"\nsignature:"+v.signature+"\n"
	}
	if r.Signature == SignatureValid || r.Signature == SignatureAbsent { // otherwise a fault already names one of the two
		if !bytes.Equal(v.small[keyFile], wantKey) {
			r.Fault(keyFile, notOurs)
		}
		if string(v.small[signatureName]) != wantSignature {
			r.Fault(signatureName, notOurs)
		}
	}
	if previous, ok := v.small[previousFile]; string(previous) != o.PreviousBundleHash || ok != (o.PreviousBundleHash != "") {
		r.Fault(previousFile, "changed: not what row 1 says")
	}
	if former, _ := v.former(); !former && !bytes.Equal(v.small[verifierFile], verifier) {
		r.Fault(verifierFile, "not a verify.py that this version of Plumbline writes, or an earlier one")
	}
}

// formerVerifiers holds the digests of the verify.py files that earlier versions wrote, and
// whether bundles of that version have an attestation.
var formerVerifiers = map[string]bool{
	"4d996b879c1509526d54c5c20f673aa2f92667d1246beea08483b96fc7d5a895": false,
	"c8aecc44faa649ca2e4c2e40c9c7706228b9e40a257a193f1659ff85934dc233": true,
	"ecb06a1fc35cff8d95129aa5ac0e3030c243a852b13d2a543d46a6be77c860b9": true,
	"32bb318ac5e31230c276527dc8df32b99675e6f0d68afe887cd510da0a224bd1": true,
	"e1fcb67bdd17e008cefd08b249748165fc96997dc2f29b800b46178c2b504476": true, // c659c41
	"6e7ea08277825542f9976b868f018f634a06576c365d140902e8808bbeaee507": true, // f0eec29
	"6fd59dac7c60b16854f41112f8ff2b957539f9ae0a5250e0ceede42c2dcf8cf5": true, // 3e6307d
	"9b380f75a7748f79d09e8a99e27599353d73ca8bf3d32d67eb0c2fbdd1b0ddc6": true, // 4df8837
	"d05dedb800fbce9bb83a7a58a64edf881978501de178716ba4080eebc63fb9e1": true, // 9aa5c60
	"a61365f59912ae3452e3762100dd60849912cdc2d9ce68bcade8812bb1edfc6e": true, // c8f872c
}

// former reports whether verify.py is of an earlier version, and whether bundles of that version
// have an attestation.
func (v *verification) former() (known, attested bool) {
	attested, known = formerVerifiers[v.files[verifierFile].sha256]
	return known, attested
}

// checkMembers requires every file that the open row lists, in the list's order after the draft's
// files, and no other file.
func (v *verification) checkMembers(o *Opening) {
	r := v.report
	want := []string{logFile, manifestFile, keyFile, signatureName, verifierFile}
	if o.PreviousBundleHash != "" {
		want = append(want, previousFile)
	}
	for i, m := range o.Members {
		if i > 0 { // the first is verify.py
			want = append(want, m.Name)
		}
		file, ok := v.files[m.Name]
		switch {
		case !ok:
			r.Fault(m.Name, "missing, though row 1 lists it")
		case file == fileDigest{m.Bytes, m.SHA256}:
		case m.Name == TracesMember && v.log.badTrace > 0:
			r.Fault(m.Name, "line %d was changed: it is not the trace that row %d records", v.log.badTrace, v.log.badTrace+1)
		default:
			r.Fault(m.Name, "changed: not the file that was sealed")
		}
	}
	if _, present := v.small[attestationFile]; present {
		want = append(want, attestationFile)
	}
	for _, name := range v.order {
		if !slices.Contains(want, name) {
			r.Fault(name, "not a file of this bundle: row 1 does not list it")
		}
	}
	if len(r.Faults) == 0 && !slices.Equal(v.order, want) {
		r.Fault(archivePlace, "repacked after it was made: files are missing, or not in the order that Plumbline writes")
	}
}
