package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// attestationFile is the sidecar of a signed bundle: a DSSE envelope around an in-toto statement
// whose subjects are all other files. The draft's signature covers the rows alone. A reader of
// DSSE and in-toto can check all files without knowing the draft.
const attestationFile = "attestation.dsse.json"

const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://github.com/plumbline/plumbline/aivs-session/v1"
)

// maxSignatures limits how many signatures of an envelope are tried: each costs the verifier
// time.
const maxSignatures = 100

// envelope is a DSSE envelope (DSSE 1.0.2).
type envelope struct {
	PayloadType string              `json:"payloadType"`
	Payload     string              `json:"payload"` // base64
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"` // base64, over the pre-authentication encoding
}

// statement is an in-toto statement (version 1).
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"` // in the archive's order
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string        `json:"name"`
	Digest subjectDigest `json:"digest"`
}

type subjectDigest struct {
	SHA256 string `json:"sha256"`
}

// predicate repeats the values that link the files to a session.
type predicate struct {
	SessionID          string `json:"session_id"`
	ActionCount        int64  `json:"action_count"`
	ChainHash          string `json:"chain_hash"`
	PreviousBundleHash string `json:"previous_bundle_hash"` // empty for the first part
}

// attested is one file as stored in the archive.
type attested struct{ name, sha256 string }

// payloadOf returns the in-toto statement over files in the form that the builder writes.
func payloadOf(files []attested, about predicate) ([]byte, error) {
	s := statement{Type: statementType, PredicateType: predicateType, Predicate: about}
	for _, f := range files {
		s.Subject = append(s.Subject, subject{Name: root + f.name, Digest: subjectDigest{f.sha256}})
	}
	return json.Marshal(s)
}

// preAuthentication returns the bytes that DSSE signs: type and payload, each with its length.
func preAuthentication(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
}

// attest returns attestation.dsse.json.
func attest(key ed25519.PrivateKey, payload []byte) ([]byte, error) {
	signature := ed25519.Sign(key, preAuthentication(payloadType, payload))
	return envelopeText(payload, KeyID(key.Public().(ed25519.PublicKey)), base64.StdEncoding.EncodeToString(signature))
}

// envelopeText returns attestation.dsse.json in its only accepted form.
func envelopeText(payload []byte, keyID, signature string) ([]byte, error) {
	text, err := json.Marshal(envelope{
		PayloadType: payloadType,
		Payload:     base64.StdEncoding.EncodeToString(payload),
		Signatures:  []envelopeSignature{{KeyID: keyID, Sig: signature}},
	})
	return append(text, '\n'), err
}

// readEnvelope returns the payload of an envelope after it found a valid signature by key. It
// ignores members that DSSE does not define, as DSSE requires, and signatures of other kinds.
func readEnvelope(text []byte, key ed25519.PublicKey) (payload []byte, signature string, err error) {
	var e struct {
		PayloadType string           `json:"payloadType"`
		Payload     string           `json:"payload"`
		Signatures  []jsontext.Value `json:"signatures"`
	}
	if err := readJSON(text, &e); errors.Is(err, errType) {
		return nil, "", &saying{saysEnvelope, err}
	} else if err != nil {
		return nil, "", err
	}
	if len(e.Signatures) > maxSignatures {
		return nil, "", said(saysSignatures, maxSignatures)
	}
	payload, ok := eitherBase64(e.Payload)
	if !ok || e.PayloadType != payloadType {
		return nil, "", said(saysEnvelope)
	}
	for _, entry := range e.Signatures {
		var s struct {
			Sig string `json:"sig"`
		}
		_ = json.Unmarshal(entry, &s) // an entry of another form counts as no signature
		b, ok := eitherBase64(s.Sig)
		if ok && ed25519.Verify(key, preAuthentication(e.PayloadType, payload), b) {
			return payload, s.Sig, nil
		}
	}
	return nil, "", said(saysAttestKey)
}

// standardAlphabet converts base64url characters to the standard alphabet.
var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// eitherBase64 decodes canonical, padded base64 in either alphabet, as DSSE allows.
func eitherBase64(text string) ([]byte, bool) {
	return strictBase64(standardAlphabet.Replace(text))
}

// checkAttestation checks the sidecar, if there is one, against every other file. A signed bundle
// of our own dialect must have one, unless its verify.py is older than attestations.
func (v *verification) checkAttestation() {
	r := v.report
	text, present := v.small[attestationFile]
	former := v.former()
	switch {
	case !present && r.Opening != nil && r.Signature == SignatureValid && (!former.known || former.attested):
		r.fault(attestationFile, said(saysAttestMissing))
		return
	case !present:
		return
	case r.Signature == SignatureInvalid || r.Signature == SignatureUnchecked:
		return // another fault already reports this
	case r.Signature == SignatureAbsent:
		r.fault(attestationFile, said(saysAttestAlone))
		return
	}
	key, _ := hex.DecodeString(r.PublicKey) // checkSignature wrote it as hexadecimal
	payload, signature, err := readEnvelope(text, key)
	switch {
	case err != nil:
	case r.Opening != nil:
		err = v.attestedForm(text, payload, signature)
	default:
		err = v.attestedFiles(payload)
	}
	if err != nil {
		r.fault(attestationFile, err)
		return
	}
	r.Attested = true
	r.pass(saysPassAttestation)
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
		return said(saysAttestOther)
	}
	form, err := envelopeText(payload, r.KeyID, signature)
	if err == nil && !bytes.Equal(form, text) {
		err = said(saysNotOurs)
	}
	return err
}

// attestedFiles compares the subjects of another generator's statement with the files of the
// archive.
func (v *verification) attestedFiles(payload []byte) error {
	var s struct { // the predicate is not checked here
		Type    string    `json:"_type"`
		Subject []subject `json:"subject"`
	}
	if err := readJSON(payload, &s); err != nil {
		return &saying{saysStatement, err}
	}
	if s.Type != statementType {
		return &saying{saysStatement, fmt.Errorf("it is of type %.80q, want %s", s.Type, statementType)}
	}
	covered := map[string]bool{}
	for _, subject := range s.Subject {
		name := strings.TrimPrefix(subject.Name, root)
		if v.files[name].sha256 != subject.Digest.SHA256 || subject.Digest.SHA256 == "" || covered[name] {
			return said(saysSignedOther, quoted(subject.Name))
		}
		covered[name] = true
	}
	for _, name := range slices.Sorted(slices.Values(v.order)) {
		if name != attestationFile && !covered[name] {
			return said(saysNotSignedFor, quoted(name))
		}
	}
	return nil
}
