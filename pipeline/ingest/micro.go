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

// prepareMicro opens the key that AIVS-Micro proofs are signed with.
func (s *server) prepareMicro(ctx context.Context) error {
	key, err := s.followKey(ctx, s.cfg.MicroKeyFile, keyring.Micro)
	if err != nil {
		return fmt.Errorf("micro_key_file: %w", err)
	}
	s.microKey = key
	return nil
}

// microScan is what a proof is asked for of.
type microScan struct {
	URL                string       `json:"url"`
	DOMHash            string       `json:"dom_hash"`             // with or without "sha256:"
	ScannerVersionHash string       `json:"scanner_version_hash"` // likewise
	ScanOrigin         *string      `json:"scan_origin"`          // "local" where absent
	Timestamp          *schema.Time `json:"timestamp"`            // now where absent
}

// postMicro signs the proof of a scan: 201, and the proof.
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

// microVerdict is what verifying a proof came to.
type microVerdict struct {
	Result  micro.Result   `json:"result"`
	KeyID   string         `json:"key_id,omitzero"`  // of the key that signed
	Message string         `json:"message,omitzero"` // why it did not pass
	Faults  []schema.Fault `json:"faults,omitzero"`
}

// verifyMicro verifies a proof for anyone: by the public key that is given beside
// it, or else by the keys of this installation. What is no proof fails.
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

// microQuestion is a proof, and who should have signed it.
type microQuestion struct {
	Proof     jsontext.Value `json:"proof"`
	PublicKey string         `json:"public_key"` // in any form that public_key.pem has

	key ed25519.PublicKey // nil: this installation
}

// readMicroQuestion reads a body that is a proof, or one with a public key beside it.
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

// microKeys are those that may have signed a proof of a scan: the one that was asked
// for, or those of this installation that had not ended then. They may have begun
// later: a proof is dated at its scan, not at its signature.
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

// getMicroKeys tells everyone what proofs are signed with, older keys too.
func (s *server) getMicroKeys(w http.ResponseWriter, _ *http.Request) int {
	var keys []schema.Key
	for _, k := range s.microKey.Keys() {
		keys = append(keys, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return writeKeys(w, keys)
}
