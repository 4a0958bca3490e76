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
		SessionID   jsontext.Value `json:"session_id"`
		ActionCount jsontext.Value `json:"action_count"`
		ChainHash   jsontext.Value `json:"chain_hash"`
		AIVSVersion jsontext.Value `json:"aivs_version"`    // the draft's; its own generator does not write it
		Conduit     jsontext.Value `json:"conduit_version"` // that generator's
	}
	text, present := v.small[manifestFile]
	if !present {
		r.fault(manifestFile, said(saysMissing))
		return
	}
	if err := readJSON(text, &m); err != nil {
		r.fault(manifestFile, err)
		return
	}
	count, err := strconv.ParseInt(string(m.ActionCount), 10, 64)
	switch {
	case absent(m.SessionID) || absent(m.ChainHash) || absent(m.ActionCount):
		r.fault(manifestFile, said(saysNoManifest))
	case textOf(m.ChainHash) != r.ChainHash:
		v.changed = true
		r.fault(manifestFile, said(saysChainHash, shown(m.ChainHash), r.ChainHash))
	case err != nil || count != r.Rows:
		v.changed = true
		r.fault(manifestFile, said(saysCount, shown(m.ActionCount), r.Rows))
	case m.SessionID.Kind() != '"' || r.Rows > 0 && textOf(m.SessionID) != v.log.session:
		r.fault(manifestFile, said(saysSession, shown(m.SessionID), quoted(v.log.session)))
	case v.log.generator.gap != nil && m.AIVSVersion != nil && m.Conduit == nil:
		r.Faults = append(r.Faults, *v.log.generator.gap)
	}
	if r.SessionID == "" {
		r.SessionID = textOf(m.SessionID)
	}
}

// absent reports whether a member is missing or null.
func absent(value jsontext.Value) bool { return value == nil || value.Kind() == 'n' }

// shown returns a value of a bundle in short.
func shown(value jsontext.Value) string {
	if value.Kind() == '"' {
		return quoted(textOf(value))
	}
	return string(value[:min(len(value), 40)])
}

// checkOwn requires that every byte of a bundle of our own dialect is covered: by the rows'
// hashes, by the seal, by the open row's list, or by equality with what the builder writes.
func (v *verification) checkOwn(o *Opening) {
	r := v.report
	if v.log.sealed != r.Rows {
		r.fault(fmt.Sprintf("row %d", r.Rows), said(saysNoSeal))
	}
	v.checkSmallFiles(o)
	r.pass(saysPassContents, v.log.sealed)
	v.checkMembers(o)
	r.pass(saysPassMembers, len(o.Members))
	switch { // line i of traces.jsonl and row i+1
	case o.TraceCount != r.Rows-2:
		r.fault("row 1", said(saysTraceCount, o.TraceCount, r.Rows-2))
	case !v.log.traced:
		r.Skip(saysNoTraces)
	case len(r.Faults) > 0: // an earlier fault already shows what was changed
	case v.log.badTrace > 0:
		r.fault(fmt.Sprintf("row %d", v.log.badTrace+1), said(saysTraceDigest, v.log.badTrace))
	case v.log.traceLines != len(v.log.traces):
		r.fault(TracesMember, said(saysTraceLines, v.log.traceLines, len(v.log.traces)))
	default:
		r.pass(saysPassTraces, v.log.traceLines)
	}
	header := gzipHeader
	if v.former().formerGzip {
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
		r.fault(manifestFile, said(saysManifest))
	}
	wantKey, wantSignature := publicKeyFile(nil), "chain_hash:"+r.ChainHash+"\n"+noSigning
	if r.Signature == SignatureValid {
		public, err := hex.DecodeString(r.PublicKey)
		if err != nil || o.KeyID != r.KeyID {
			v.changed = true
			r.fault("row 1", said(saysKeyID))
		}
		wantKey, wantSignature = publicKeyFile(public), "chain_hash:"+r.ChainHash+"\nsignature:"+v.signature+"\n"
	}
	if r.Signature == SignatureValid || r.Signature == SignatureAbsent { // otherwise a fault already names one of the two
		for _, file := range []struct{ name, want string }{{keyFile, string(wantKey)}, {signatureName, wantSignature}} {
			switch text, present := v.small[file.name]; {
			case !present:
				r.fault(file.name, said(saysMissing))
			case string(text) != file.want:
				r.fault(file.name, said(saysNotOurs))
			}
		}
	}
	if previous, ok := v.small[previousFile]; string(previous) != o.PreviousBundleHash || ok != (o.PreviousBundleHash != "") {
		r.fault(previousFile, said(saysNotOfRow1))
	}
	if !v.former().known && !bytes.Equal(v.small[verifierFile], verifier) {
		r.fault(verifierFile, said(saysVerifier))
	}
}

// formerVerifier describes the bundles of an earlier version by the verify.py in them.
type formerVerifier struct {
	known      bool
	attested   bool // they have an attestation if they are signed
	formerGzip bool // they begin with formerGzipHeader
}

// formerVerifiers holds the digests of the verify.py files that earlier versions wrote. verify.py
// has the same list.
var formerVerifiers = map[string]formerVerifier{
	"4d996b879c1509526d54c5c20f673aa2f92667d1246beea08483b96fc7d5a895": {true, false, true},
	"c8aecc44faa649ca2e4c2e40c9c7706228b9e40a257a193f1659ff85934dc233": {true, true, true},
	"ecb06a1fc35cff8d95129aa5ac0e3030c243a852b13d2a543d46a6be77c860b9": {true, true, true},
	"32bb318ac5e31230c276527dc8df32b99675e6f0d68afe887cd510da0a224bd1": {true, true, true},
	"e1fcb67bdd17e008cefd08b249748165fc96997dc2f29b800b46178c2b504476": {true, true, true},  // c659c41
	"6e7ea08277825542f9976b868f018f634a06576c365d140902e8808bbeaee507": {true, true, false}, // f0eec29
	"6fd59dac7c60b16854f41112f8ff2b957539f9ae0a5250e0ceede42c2dcf8cf5": {true, true, false}, // 3e6307d
	"9b380f75a7748f79d09e8a99e27599353d73ca8bf3d32d67eb0c2fbdd1b0ddc6": {true, true, false}, // 4df8837
	"d05dedb800fbce9bb83a7a58a64edf881978501de178716ba4080eebc63fb9e1": {true, true, false}, // 9aa5c60
	"a61365f59912ae3452e3762100dd60849912cdc2d9ce68bcade8812bb1edfc6e": {true, true, false}, // c8f872c
	"57d785d53f017f8d488423ea3a49cba8f116a06c9f14b9067399e7a45b3e13e4": {true, true, false}, // 3235d25
	"0ce8e59126fc46aa2904a82c6244f99d39b2105e3fa0341065b1bf8e36c41c3c": {true, true, false}, // a9ff21e
	"16b7387817259f0d6480208a36fa1cd052236e7f98c23e016d92673e2e1eeed4": {true, true, false}, // 9a930e9
	"e483f017bca5a0b0b64e66b9bb0decc9212a5e7ec3bb3cd782f5e070bfbcbc32": {true, true, false}, // 1bb89a2, 0.1.0
	"7c9a748a3605f506a5a96b8831b5b375f3439c5f19bc27cca593c801e2384ccb": {true, true, false}, // ff1ee36
}

// former returns which earlier version wrote the bundle; zero if none did.
func (v *verification) former() formerVerifier { return formerVerifiers[v.files[verifierFile].sha256] }

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
			r.fault(m.Name, said(saysListed))
		case file == fileDigest{m.Bytes, m.SHA256}:
		case m.Name == TracesMember && v.log.badTrace > 0:
			r.fault(m.Name, said(saysTraceChanged, v.log.badTrace, v.log.badTrace+1))
		default:
			r.fault(m.Name, said(saysFileChanged))
		}
	}
	if _, present := v.small[attestationFile]; present {
		want = append(want, attestationFile)
	}
	for _, name := range v.order {
		if !slices.Contains(want, name) {
			r.fault(name, said(saysUnlisted))
		}
	}
	if len(r.Faults) == 0 && !slices.Equal(v.order, want) {
		r.Fault(archivePlace, "repacked after it was made: files are missing, or not in the order that Plumbline writes")
	}
}
