package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// checkAttestation checks the sidecar, if there is one, against every other file. A signed bundle
// of our own dialect must have one, unless its verify.py is older than attestations.
func (v *verification) checkAttestation() {
	r := v.report
	text, present := v.small[attestationFile]
	switch {
	case !present && r.Opening != nil && r.Signature == SignatureValid && !v.early():
		r.fault(attestationFile, "missing, though the bundle is signed")
		return
	case !present:
		return
	case r.Signature == SignatureInvalid || r.Signature == SignatureUnchecked:
		return // another fault already reports this
	case r.Signature == SignatureAbsent:
		r.fault(attestationFile, "the main signature is missing or wrong, so this second one cannot be trusted")
		return
	}
	key, _ := hex.DecodeString(r.PublicKey) // checkSigned wrote it as hexadecimal
	if err := v.attested(text, key); err != nil {
		r.fault(attestationFile, "%v", err)
		return
	}
	r.Attested = true
}

// attested compares the statement's subjects with the files of the archive.
func (v *verification) attested(text []byte, key ed25519.PublicKey) error {
	payload, signature, err := readEnvelope(text, key)
	if err != nil {
		return err
	}
	if v.report.Opening != nil {
		return v.attestedForm(text, payload, signature)
	}
	var s struct { // the predicate is not checked here
		Type    string    `json:"_type"`
		Subject []subject `json:"subject"`
	}
	if err := readJSON(payload, &s); err != nil {
		return fmt.Errorf("its statement: %w", err)
	}
	if s.Type != statementType {
		return fmt.Errorf("its statement is of type %.80q, want %s", s.Type, statementType)
	}
	covered := map[string]bool{}
	for _, subject := range s.Subject {
		name := strings.TrimPrefix(subject.Name, root)
		if v.files[name].sha256 != subject.Digest.SHA256 || subject.Digest.SHA256 == "" || covered[name] {
			return fmt.Errorf("%.80q is not the file that was signed for", subject.Name)
		}
		covered[name] = true
	}
	for _, name := range v.order {
		if name != attestationFile && !covered[name] {
			return fmt.Errorf("%s is not signed for", name)
		}
	}
	return nil
}

// attestedForm requires the exact text that the builder writes.
func (v *verification) attestedForm(text, payload []byte, signature string) error {
	r := v.report
	var files []attested
	for _, name := range v.order {
		if name != attestationFile {
			files = append(files, attested{name, v.files[name].sha256})
		}
	}
	want, err := payloadOf(files, r.Opening.predicate(r.Rows, r.ChainHash))
	if err != nil {
		return err
	}
	if !bytes.Equal(want, payload) {
		return errors.New("the second signature does not match these files")
	}
	form, err := envelopeText(payload, r.KeyID, signature)
	if err != nil {
		return err
	}
	if !bytes.Equal(form, text) {
		return errors.New("not written as Plumbline writes it")
	}
	return nil
}
