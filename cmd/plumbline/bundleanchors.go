package main

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// anchorFlags are the requirements for the files next to a bundle. A file whose flag is given
// is required: otherwise nobody would notice that a stamp or proof was removed.
type anchorFlags struct {
	TSACert string   `name:"tsa-cert" type:"path" placeholder:"FILE" help:"Certificates (PEM) of a time stamping authority: a stamp beside the bundle (.tsr) must be by it."`
	LogKey  []string `sep:"none" placeholder:"KEY|FILE" help:"Key of a transparency log (name+hash+base64, or several lines of it): a proof beside the bundle (.tlog-proof) must be by it; by one of them where there are several."`
}

// sidecars checks the files next to bundles.
type sidecars struct {
	authorities []*x509.Certificate
	logs        []note.Verifier
	ring        *keyring.Ring // when keys ended; nil if --keyring is not given
}

func (f *anchorFlags) open(ring *keyring.Ring) (*sidecars, error) {
	a := &sidecars{ring: ring}
	var err error
	if a.authorities, err = authorities(f.TSACert); err != nil {
		return nil, err
	}
	if a.logs, err = logKeys("--log-key", f.LogKey); err != nil {
		return nil, err
	}
	return a, nil
}

// logKeys reads the keys of transparency logs from a flag.
func logKeys(flag string, given []string) (keys []note.Verifier, err error) {
	for _, text := range given {
		named := text
		if content, err := durable.ReadPlain(text, maxSmallFile); err == nil {
			text = string(content)
		}
		for line := range strings.Lines(cmp.Or(text, "\n")) { // a log publishes one line for each of its keys
			key, err := anchor.ParseVerifier(line)
			if err != nil {
				return nil, usagef("%s %q: %w", flag, named, err)
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// authorities reads the file of --tsa-cert.
func authorities(path string) ([]*x509.Certificate, error) {
	if path == "" {
		return nil, nil
	}
	text, err := durable.ReadPlain(path, maxSmallFile)
	if err != nil {
		return nil, usagef("--tsa-cert: %w", err)
	}
	trusted, err := anchor.Authorities(text)
	if err != nil {
		return nil, usagef("--tsa-cert %s: %w", path, err)
	}
	return trusted, nil
}

// check checks the files next to a bundle that is intact by itself, and adds the
// results to the report.
func (b *sidecars) check(bundle string, report *aivs.Report) error {
	if !report.Intact {
		return nil
	}
	stamp, err := readBeside(bundle+anchor.TimestampSuffix, anchor.MaxReply)
	if err != nil {
		return err
	}
	proof, err := readBeside(bundle+anchor.ProofSuffix, anchor.MaxProof)
	if err != nil {
		return err
	}
	b.checkStamp(stamp, filepath.Base(bundle)+anchor.TimestampSuffix, report)
	b.checkProof(proof, filepath.Base(bundle)+anchor.ProofSuffix, report)
	return nil
}

func (b *sidecars) checkStamp(stamp []byte, name string, report *aivs.Report) {
	switch {
	case b.authorities == nil && stamp != nil:
		report.Skip("time stamp: there is one, and --tsa-cert names nobody whose stamps are believed")
	case b.authorities == nil:
	case stamp == nil:
		report.Fault(name, "there is no time stamp, and one is asked for")
	case report.SignatureBytes == nil:
		report.Fault(name, "the bundle has no signature that could be stamped")
	default:
		at, err := anchor.VerifyTimestamp(stamp, report.SignatureBytes, b.authorities, nil)
		if err == nil {
			err = anchor.CheckStampTime(at, report.ExportedAt, b.keyEnd(report))
		}
		if err != nil {
			report.Fault(name, "%v", err)
			return
		}
		report.Anchors = append(report.Anchors, aivs.Anchor{File: name, Says: stampSays(at, report.ExportedAt)})
	}
}

// keyEnd returns when the key that signed a bundle ended; zero if it did not end or
// there is no key list.
func (b *sidecars) keyEnd(report *aivs.Report) time.Time {
	if b.ring == nil {
		report.Skip("time stamp: whether the key had ended by then, since --keyring names no key list")
		return time.Time{}
	}
	for _, key := range b.ring.Keys() {
		if key.PublicKey == report.PublicKey {
			return key.NotAfter
		}
	}
	return time.Time{}
}

// stampSays returns a text with the stamp's time. If the stamp is later than the export by
// more than clocks differ, the text contains the difference.
func stampSays(at, exportedAt time.Time) string {
	says := "signed at the latest " + at.UTC().Format(time.RFC3339)
	if late := at.Sub(exportedAt).Round(time.Second); !exportedAt.IsZero() && late > anchor.ClockSkew {
		says += fmt.Sprintf(", %s after exported_at", late)
	}
	return says
}

func (b *sidecars) checkProof(text []byte, name string, report *aivs.Report) {
	switch {
	case b.logs == nil && text != nil:
		report.Skip("transparency log: there is a proof of inclusion, and --log-key names no log")
	case b.logs == nil:
	case text == nil:
		report.Fault(name, "there is no proof of inclusion in a transparency log, and one is asked for")
	default:
		index, checkpoint, err := b.prove(text, report)
		if err != nil {
			report.Fault(name, "%v", err)
			return
		}
		says := fmt.Sprintf("leaf %d of the log %q at %d", index, checkpoint.Origin, checkpoint.Size)
		report.Anchors = append(report.Anchors, aivs.Anchor{File: name, Says: says})
	}
}

// prove checks a proof with each of the logs' keys.
func (b *sidecars) prove(text []byte, report *aivs.Report) (index int64, c *anchor.Checkpoint, err error) {
	proof, err := anchor.ParseProof(text)
	if err != nil {
		return 0, nil, err
	}
	leaf, err := anchor.Leaf(report.SessionID, report.SHA256)
	if err != nil {
		return 0, nil, err
	}
	for _, key := range b.logs {
		if c, err = proof.Verify(leaf, key); err == nil {
			break
		}
	}
	return proof.Index, c, err
}

// readBeside reads a file next to a bundle, at most one byte more than the limit; nil if
// there is none.
func readBeside(path string, most int64) ([]byte, error) {
	file, err := durable.OpenPlain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}
