package anchor

import (
	"crypto/x509"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
)

// Trust names whose evidence about bundles is accepted. Evidence of a kind that it names is
// required: otherwise nobody would notice that a stamp or proof was removed.
type Trust struct {
	Authorities []*x509.Certificate // of time stamping authorities; nil: no stamp is accepted
	Logs        []note.Verifier     // keys of transparency logs; nil: no proof is accepted
	Keys        *keyring.Ring       // when keys ended; nil if it is not known
}

// Check checks the files next to a bundle that is intact by itself, and adds the results to the
// report. bundle is the bundle's file name; stamp and proof are the contents of the files, nil
// if there is no such file.
func (t *Trust) Check(report *aivs.Report, bundle string, stamp, proof []byte) {
	if report.Intact {
		t.checkStamp(report, bundle+TimestampSuffix, stamp)
		t.checkProof(report, bundle+ProofSuffix, proof)
	}
}

func (t *Trust) checkStamp(report *aivs.Report, name string, stamp []byte) {
	switch {
	case t.Authorities == nil && stamp != nil:
		report.Skip("the time stamp. There is one, but --tsa-cert-file names no authority that is trusted.")
	case t.Authorities == nil:
	case stamp == nil:
		report.Fault(name, "there is no time stamp, but one is required")
	case report.SignatureBytes == nil:
		report.Fault(name, "the bundle has no signature that could be stamped")
	default:
		at, err := VerifyTimestamp(stamp, report.SignatureBytes, t.Authorities, nil)
		if err == nil {
			err = CheckStampTime(at, report.ExportedAt, t.keyEnd(report))
		}
		if err != nil {
			report.Fault(name, "%v", err)
			return
		}
		says := "signed at the latest " + at.UTC().Format(time.RFC3339)
		if late := at.Sub(report.ExportedAt).Round(time.Second); !report.ExportedAt.IsZero() && late > ClockSkew {
			says += fmt.Sprintf(", %s after exported_at", late)
		}
		report.Anchors = append(report.Anchors, aivs.Anchor{File: name, Says: says})
	}
}

// keyEnd returns when the key that signed a bundle ended; zero if it did not end or
// there is no key list.
func (t *Trust) keyEnd(report *aivs.Report) time.Time {
	if t.Keys == nil {
		report.Skip("whether the key had ended by the time of the stamp. --keyring names no key list.")
		return time.Time{}
	}
	for _, key := range t.Keys.Keys() {
		if key.PublicKey == report.PublicKey {
			return key.NotAfter
		}
	}
	return time.Time{}
}

func (t *Trust) checkProof(report *aivs.Report, name string, text []byte) {
	switch {
	case t.Logs == nil && text != nil:
		report.Skip("the transparency log. There is a proof of inclusion, but --log-key names no log.")
		return
	case t.Logs == nil:
		return
	case text == nil:
		report.Fault(name, "there is no proof of inclusion in a transparency log, but one is required")
		return
	}
	proof, err := ParseProof(text)
	if err != nil {
		report.Fault(name, "%v", err)
		return
	}
	leaf, err := Leaf(report.SessionID, report.SHA256)
	if err != nil {
		report.Fault(name, "%v", err)
		return
	}
	var c *Checkpoint
	for _, key := range t.Logs {
		if c, err = proof.Verify(leaf, key); err == nil {
			says := fmt.Sprintf("leaf %d of the log %q at %d", proof.Index, c.Origin, c.Size)
			report.Anchors = append(report.Anchors, aivs.Anchor{File: name, Says: says})
			return
		}
	}
	report.Fault(name, "%v", err)
}
