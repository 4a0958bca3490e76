package ingest

import (
	"context"
	"crypto/ed25519"
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
	"github.com/plumbline/plumbline/schema"
)

// prepareMicro opens the key that signs AIVS-Micro proofs.
func (s *server) prepareMicro(ctx context.Context) error {
	key, err := s.followKey(ctx, s.cfg.MicroKeyFile, keyring.Micro)
	if err != nil {
		return fmt.Errorf("micro_key_file: %w", err)
	}
	s.microKey = key
	return nil
}

// microScan is a request for the proof of a scan.
type microScan struct {
	URL                string       `json:"url"`
	DOMHash            string       `json:"dom_hash"`             // with or without "sha256:"
	ScannerVersionHash string       `json:"scanner_version_hash"` // the same
	ScanOrigin         *string      `json:"scan_origin"`          // "local" if absent
	Timestamp          *schema.Time `json:"timestamp"`            // now if absent
}

// postMicro signs the proof of a scan. It answers 201 and the proof.
func (s *server) postMicro(w http.ResponseWriter, r *http.Request, _ auth.Grant) int {
	raw, p := s.document(w, r, micro.MaxBytes, typesOfOther...)
	if p != nil {
		return p.write(w)
	}
	var asked microScan
	if err := json.Unmarshal(raw, &asked, json.RejectUnknownMembers(true)); err != nil {
		return unreadableMicro(err).write(w)
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
		p := problemf(http.StatusBadRequest, "invalid_scan", "no proof can be made of this scan: see the faults")
		p.Faults = microFaults(err)
		return p.write(w)
	}
	key, err := s.microKey.Current(time.Now())
	if err != nil {
		return s.failure("sign a proof", err).write(w)
	}
	proof.Sign(key.Private)
	return writeJSON(w, http.StatusCreated, proof)
}

func unreadableMicro(err error) *problem {
	return unreadable("docs/MICRO.md has its form", err)
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

// verifyMicro verifies a proof. Anyone may ask. It uses the public key in the request if there is
// one, otherwise the keys of this installation. A body that is not a proof fails.
func (s *server) verifyMicro(w http.ResponseWriter, r *http.Request) int {
	raw, p := s.document(w, r, 2*micro.MaxBytes, typesOfOther...)
	if p != nil {
		return p.write(w)
	}
	asked, p := readMicroQuestion(raw)
	if p != nil {
		return p.write(w)
	}
	proof, err := micro.Parse(asked.Proof)
	if err != nil {
		return writeJSON(w, http.StatusOK, microVerdict{Result: micro.Fail, Message: "this is no proof: see the faults", Faults: microFaults(err)})
	}
	return writeJSON(w, http.StatusOK, judgeMicro(proof, s.microKeys(asked.key, proof.ScannedAt())))
}

// microQuestion is a proof and its expected signer.
type microQuestion struct {
	Proof     jsontext.Value `json:"proof"`
	PublicKey string         `json:"public_key"` // in any form that public_key.pem may have

	key ed25519.PublicKey // nil: this installation
}

// readMicroQuestion decodes a body that is a proof, or a proof together with a public key.
func readMicroQuestion(raw []byte) (q microQuestion, p *problem) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		return q, unreadableMicro(err)
	}
	if members["proof"] == nil {
		return microQuestion{Proof: raw}, nil
	}
	err := json.Unmarshal(raw, &q, json.RejectUnknownMembers(true))
	if err == nil && members["public_key"] != nil {
		q.key, err = aivs.ParseKey(q.PublicKey)
	}
	if err != nil {
		return q, unreadableMicro(err)
	}
	return q, nil
}

// microKeys returns the keys that may have signed the proof of a scan: the requested one, or
// those of this installation that had not ended at the time of the scan. They may have begun
// later, because a proof has the date of its scan and not of its signature.
func (s *server) microKeys(asked ed25519.PublicKey, scanned time.Time) (keys []ed25519.PublicKey) {
	if asked != nil {
		return []ed25519.PublicKey{asked}
	}
	for _, k := range s.microKey.Keys() {
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
	return microVerdict{Result: micro.Fail, Message: "the signature is not over this proof, by the key asked for or one of this installation's"}
}

// getMicroKeys returns the public keys that sign proofs, older keys included. Anyone may ask.
func (s *server) getMicroKeys(w http.ResponseWriter, _ *http.Request) int {
	var keys []schema.Key
	for _, k := range s.microKey.Keys() {
		keys = append(keys, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return writeKeys(w, keys)
}
