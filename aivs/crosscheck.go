package aivs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checkManifest compares the manifest with the log (draft section 5.2).
func (v *verification) checkManifest() {
	r := v.report
	var m struct {
		SessionID   *string        `json:"session_id"`
		ActionCount jsontext.Value `json:"action_count"`
		ChainHash   *string        `json:"chain_hash"`
		AIVSVersion jsontext.Value `json:"aivs_version"`    // the draft's, which its own generator does not write
		Conduit     jsontext.Value `json:"conduit_version"` // that generator's
	}
	if err := readJSON(v.small[manifestFile], &m); err != nil {
		r.fault(manifestFile, "%v", err)
		return
	}
	switch {
	case m.SessionID == nil || m.ChainHash == nil || m.ActionCount == nil:
		r.fault(manifestFile, "session_id, chain_hash or action_count is missing")
	case *m.ChainHash != r.ChainHash:
		r.fault(manifestFile, "chain_hash is %.80q, the log has %s", *m.ChainHash, r.ChainHash)
	case !isCount(m.ActionCount, r.Rows):
		r.fault(manifestFile, "action_count is %.40s, the log has %d rows", m.ActionCount, r.Rows)
	case r.Rows > 0 && *m.SessionID != v.log.session:
		r.fault(manifestFile, "session_id is %.80q, the rows have %.80q", *m.SessionID, v.log.session)
	case v.log.generator.gap != nil && m.AIVSVersion != nil && m.Conduit == nil:
		r.Faults = append(r.Faults, *v.log.generator.gap)
	}
	if r.SessionID == "" && m.SessionID != nil {
		r.SessionID = *m.SessionID
	}
}

// isCount tells whether a JSON value is that integer.
func isCount(value jsontext.Value, want int64) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && n == want
}

// sigLines are the two lines of session_sig.txt; empty where absent.
type sigLines struct{ chainHash, signature string }

// signatureLines reads session_sig.txt (draft section 4.3).
func signatureLines(text []byte) (lines sigLines, err error) {
	seen := map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		if seen[name] {
			return lines, fmt.Errorf("two lines %.40q", name)
		}
		seen[name] = true
		value = strings.Trim(value, " \t\r")
		switch name {
		case "chain_hash":
			lines.chainHash = value
		case "signature":
			lines.signature = value
		}
	}
	if seen["signature"] && lines.signature == "" || (seen["signature"] || seen["chain_hash"]) && lines.chainHash == "" {
		return lines, errors.New("the signature or the chain_hash it is over is empty")
	}
	return lines, nil
}

// checkPrevious reads the digest of the bundle before (draft section 5.4).
func (v *verification) checkPrevious() {
	text, present := v.small[previousFile]
	if !present {
		return
	}
	digest := string(bytes.Trim(text, " \t\r\n"))
	if !hexDigest.MatchString(digest) {
		v.report.fault(previousFile, "not the SHA-256 of a bundle in 64 lower-case hexadecimal digits")
		return
	}
	v.report.PreviousBundleHash = digest
}

// checkOwn demands of a bundle of our own dialect that every byte be accounted
// for: by the rows' hashes, by the seal, by the open row's list, or by being what
// the builder writes.
func (v *verification) checkOwn() {
	r, o := v.report, v.report.Opening
	if v.log.sealed != r.Rows {
		r.fault(fmt.Sprintf("row %d", r.Rows), "the log does not end with a seal")
	}
	v.checkDraftFiles(o)
	v.checkMembers(o)
	v.checkTraces(o)
	if !v.canonical {
		r.fault(archivePlace, "not in canonical form: entries, their order or their headers were changed")
	}
}

// checkDraftFiles compares the small files with what the builder writes.
func (v *verification) checkDraftFiles(o *Opening) {
	r := v.report
	manifest, err := o.manifest(r.Rows, r.ChainHash)
	if err != nil || !bytes.Equal(manifest, v.small[manifestFile]) {
		r.fault(manifestFile, "not what the open row says, or not in canonical form")
	}
	if r.Signature != SignatureInvalid {
		v.checkForms(o)
	}
	if previous, ok := v.small[previousFile]; string(previous) != o.PreviousBundleHash || ok != (o.PreviousBundleHash != "") {
		r.fault(previousFile, "not what the open row says")
	}
	if !bytes.Equal(v.small[verifierFile], verifier) && !v.former() {
		r.fault(verifierFile, "not a verifier that Plumbline writes, or wrote")
	}
}

// formerVerifiers are the digests of the verify.py that earlier versions wrote,
// and whether their bundles have an attestation.
var formerVerifiers = map[string]bool{
	"4d996b879c1509526d54c5c20f673aa2f92667d1246beea08483b96fc7d5a895": false,
	"c8aecc44faa649ca2e4c2e40c9c7706228b9e40a257a193f1659ff85934dc233": true,
	"ecb06a1fc35cff8d95129aa5ac0e3030c243a852b13d2a543d46a6be77c860b9": true,
}

// former tells whether verify.py is of an earlier version.
func (v *verification) former() bool {
	_, known := formerVerifiers[v.files[verifierFile].sha256]
	return known
}

// early tells whether the bundle is from before there were attestations.
func (v *verification) early() bool {
	attested, known := formerVerifiers[v.files[verifierFile].sha256]
	return known && !attested
}

// checkForms compares the two files of the signature with their one form.
func (v *verification) checkForms(o *Opening) {
	r := v.report
	wantKey, wantSignature := publicKeyFile(nil), "chain_hash:"+r.ChainHash+"\n"+noSigning
	if r.Signature == SignatureValid {
		public, err := hex.DecodeString(r.PublicKey)
		if err != nil || o.KeyID != r.KeyID {
			r.fault("row 1", "its key_id is not that of %s", keyFile)
		}
		wantKey, wantSignature = publicKeyFile(public), "chain_hash:"+r.ChainHash+"\nsignature:"+v.signed.signature+"\n"
	}
	if !bytes.Equal(v.small[keyFile], wantKey) {
		r.fault(keyFile, "not in canonical form")
	}
	if string(v.small[signatureName]) != wantSignature {
		r.fault(signatureName, "not in canonical form")
	}
}

// checkMembers demands every file that the open row lists, in its order after
// the draft's, and no other.
func (v *verification) checkMembers(o *Opening) {
	r := v.report
	want := []string{logFile, manifestFile, keyFile, signatureName, verifierFile}
	if o.PreviousBundleHash != "" {
		want = append(want, previousFile)
	}
	for _, m := range o.Members {
		if m.Name == verifierFile {
			if hexSHA256(v.small[verifierFile]) != m.SHA256 || int64(len(v.small[verifierFile])) != m.Bytes {
				r.fault(m.Name, "not the file that the open row lists")
			}
			continue
		}
		want = append(want, m.Name)
		if file, ok := v.files[m.Name]; !ok {
			r.fault(m.Name, "missing, though the open row lists it")
		} else if file != (fileDigest{m.Bytes, m.SHA256}) {
			r.fault(m.Name, "not the file that the open row lists")
		}
	}
	if _, present := v.small[attestationFile]; present {
		want = append(want, attestationFile)
	}
	for _, name := range v.order {
		if !slices.Contains(want, name) {
			r.fault(name, "not a file of this bundle")
		}
	}
	if len(r.Faults) == 0 && !slices.Equal(v.order, want) {
		r.fault(archivePlace, "files are missing, or not in the canonical order")
	}
}

// checkTraces tells how line i of traces.jsonl compared with row i+1.
func (v *verification) checkTraces(o *Opening) {
	r := v.report
	if o.TraceCount != r.Rows-2 {
		r.fault("row 1", "its trace_count is %d, there are %d rows", o.TraceCount, r.Rows-2)
		return
	}
	if !v.log.traced {
		r.skip("traces: the bundle carries none")
		return
	}
	if fault := v.log.traceFault; fault != nil {
		r.Faults = append(r.Faults, *fault)
	} else if v.log.traceLines != len(v.log.traces) {
		r.fault(TracesMember, "%d lines for %d rows", v.log.traceLines, len(v.log.traces))
	}
}
