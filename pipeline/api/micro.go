package api

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/micro"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/schema"
)

// microScan is a request for the proof of a scan.
type microScan struct {
	URL                string       `json:"url"`
	DOMHash            string       `json:"dom_hash"`             // with or without "sha256:"
	ScannerVersionHash string       `json:"scanner_version_hash"` // the same
	ScanOrigin         *string      `json:"scan_origin"`          // "local" if absent
	Timestamp          *schema.Time `json:"timestamp"`            // now if absent
}

// microForm says where the form of a body is described.
const microForm = "docs/MICRO.md describes the form"

// postMicro signs the proof of a scan. It answers 201 and the proof.
func (a *API) postMicro(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	var asked microScan
	if err := a.router.JSON(w, r, micro.MaxBytes, &asked, microForm); err != nil {
		return 0, err
	}
	scan := micro.Scan{URL: asked.URL, DOMHash: asked.DOMHash, ScannerVersionHash: asked.ScannerVersionHash, Origin: "local", At: time.Now()}
	if asked.ScanOrigin != nil {
		scan.Origin = *asked.ScanOrigin
	}
	if asked.Timestamp != nil {
		scan.At = asked.Timestamp.Time
	}
	proof, err := micro.New(scan)
	if err != nil {
		p := problem.New(http.StatusBadRequest, "invalid_scan", "no proof can be made of this scan: see the faults")
		p.Faults = microFaults(err)
		return 0, p
	}
	key, err := a.microKey.Current(time.Now())
	if err != nil {
		return 0, fmt.Errorf("sign a proof: %w", err)
	}
	proof.Sign(key.Private)
	return problem.WriteJSON(w, http.StatusCreated, proof), nil
}

func microFaults(err error) (faults []schema.Fault) {
	for _, f := range micro.FaultsOf(err) {
		faults = append(faults, schema.Fault{Pointer: "/" + f.Member, Message: f.Message})
	}
	return faults
}

// microVerdict is the result of verifying a proof.
type microVerdict struct {
	Result  micro.Result   `json:"result"`
	KeyID   string         `json:"key_id,omitzero"`  // of the key that signed
	Message string         `json:"message,omitzero"` // why verification failed
	Faults  []schema.Fault `json:"faults,omitzero"`
}

// verifyMicro verifies a proof. Anyone may ask. The body is a proof, or {proof, public_key}: the key
// in any form that public_key.pem may have. Without a key it uses the keys of this installation. A
// body that is not a proof fails.
func (a *API) verifyMicro(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	raw, err := a.router.Document(w, r, 2*micro.MaxBytes, request.TypeJSON)
	if err != nil {
		return 0, err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		return 0, request.Unreadable(microForm, err)
	}
	asked := struct {
		Proof     jsontext.Value `json:"proof"`
		PublicKey string         `json:"public_key"`
	}{Proof: raw}
	var key ed25519.PublicKey // nil: the keys of this installation
	if members["proof"] != nil {
		err := json.Unmarshal(raw, &asked, json.RejectUnknownMembers(true))
		if err == nil && members["public_key"] != nil {
			key, err = aivs.ParseKey(asked.PublicKey)
		}
		if err != nil {
			return 0, request.Unreadable(microForm, err)
		}
	}
	verdict := microVerdict{Result: micro.Fail, Message: "the body is not a proof: see the faults"}
	proof, err := micro.Parse(asked.Proof)
	if err != nil {
		verdict.Faults = microFaults(err)
	} else {
		verdict = judgeMicro(proof, a.microKeys(key, proof.ScannedAt()))
	}
	return problem.WriteJSON(w, http.StatusOK, verdict), nil
}

// microKeys returns the keys that may have signed the proof of a scan: the requested one, or
// those of this installation that had not ended at the time of the scan. They may have begun
// later, because a proof has the date of its scan and not of its signature.
func (a *API) microKeys(asked ed25519.PublicKey, scanned time.Time) (keys []ed25519.PublicKey) {
	if asked != nil {
		return []ed25519.PublicKey{asked}
	}
	for _, k := range a.microKey.Keys() {
		if !errors.Is(k.ValidAt(scanned), keyring.ErrLate) {
			keys = append(keys, k.Public())
		}
	}
	return keys
}

func judgeMicro(proof *micro.Proof, keys []ed25519.PublicKey) microVerdict {
	if proof.Signature == micro.Unsigned {
		return microVerdict{Result: micro.Skip, Message: "the proof is unsigned: nothing is proven"}
	}
	for _, key := range keys {
		if proof.Verify(key) == micro.Pass {
			return microVerdict{Result: micro.Pass, KeyID: aivs.KeyID(key)}
		}
	}
	return microVerdict{Result: micro.Fail, Message: "the signature does not match this proof and the given key, or any key of this installation"}
}

// getMicroKeys returns the public keys that sign proofs, older keys included. Anyone may ask.
func (a *API) getMicroKeys(w http.ResponseWriter, _ *http.Request, _ auth.Grant) (int, error) {
	var keys []schema.Key
	for _, k := range a.microKey.Keys() {
		keys = append(keys, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return writeKeys(w, keys), nil
}

// publicKey is a public key in the form that cards use.
type publicKey struct {
	KeyID     string `json:"key_id"`
	Algorithm string `json:"algorithm"`
	PublicKey string `json:"public_key"` // base64 of 32 bytes
}

// writeKeys answers with public keys.
func writeKeys(w http.ResponseWriter, public []schema.Key) int {
	keys := make([]publicKey, len(public))
	for i, k := range public {
		keys[i] = publicKey{KeyID: k.KeyID, Algorithm: schema.SignatureEd25519, PublicKey: base64.StdEncoding.EncodeToString(k.PublicKey)}
	}
	return problem.WriteJSON(w, http.StatusOK, map[string][]publicKey{"keys": keys})
}
