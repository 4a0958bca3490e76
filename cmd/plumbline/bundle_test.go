package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// anchored is a bundle with a time stamp and a proof next to it.
type anchored struct {
	path, logKey string
	authority    *anchortest.Authority
}

func makeAnchored(t *testing.T) anchored {
	t.Helper()
	return makeAnchoredAt(t, session().ExportedAt)
}

// makeAnchoredAt makes an anchored bundle with a given exported_at, in Unix seconds.
func makeAnchoredAt(t *testing.T, exportedAt int64) anchored {
	t.Helper()
	in := session()
	in.ExportedAt = exportedAt
	made, err := aivs.Build(in, seededKey(7))
	if err != nil {
		t.Fatal(err)
	}
	a := anchored{path: filepath.Join(t.TempDir(), "x.tar.gz"), authority: anchortest.New(t)}
	if err := os.WriteFile(a.path, made.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	a.stamp(t, made.Bytes)
	a.log(t, made.SHA256)
	return a
}

func seededKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func (a *anchored) stamp(t *testing.T, bundle []byte) {
	t.Helper()
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	query, err := anchor.Query(report.SignatureBytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := a.authority.Reply(query)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path+".tsr", reply, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *anchored) log(t *testing.T, digest string) {
	t.Helper()
	key := tlog.LogKey{Origin: "example.org/log", Private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{5}, ed25519.SeedSize))}
	log, err := tlog.OpenLog(t.TempDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := anchor.Leaf("s", digest)
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := log.Append(leaf)
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if err := tlog.PlaceProof(a.path, proofs[0]); err != nil {
		t.Fatal(err)
	}
	if a.logKey, err = anchor.VerifierKey(key.Origin, key.Private.Public().(ed25519.PublicKey)); err != nil {
		t.Fatal(err)
	}
}

func verifyWith(path string, flags anchorFlags) (said string, err error) {
	var out bytes.Buffer
	command := bundleVerifyCommand{Paths: []string{path}, trustFlags: trustFlags{anchorFlags: flags}}
	err = command.Run(context.Background(), &console{out: &out})
	return out.String(), err
}

func TestFilesNextToABundleAreChecked(t *testing.T) {
	a := makeAnchored(t)
	all := anchorFlags{TSACert: a.authority.Roots, LogKey: []string{a.logKey}}
	said, err := verifyWith(a.path, all)
	if err != nil || !strings.Contains(said, `PASS  x.tar.gz.tsr: signed at the latest 20`) ||
		!strings.Contains(said, `PASS  x.tar.gz.tlog-proof: leaf 0 of the log "example.org/log" at 1`) {
		t.Errorf("error %v, output:\n%s", err, said)
	}
	said, err = verifyWith(a.path, anchorFlags{})
	if err != nil || !strings.Contains(said, "NOT CHECKED: the time stamp.") || !strings.Contains(said, "NOT CHECKED: the transparency log.") {
		t.Errorf("nothing is trusted: error %v, output:\n%s", err, said)
	}
	stranger := anchortest.New(t)
	if said, err := verifyWith(a.path, anchorFlags{TSACert: stranger.Roots}); !errors.Is(err, errFoundBad) || !strings.Contains(said, `FAIL  x.tar.gz.tsr: `) {
		t.Errorf("another authority: error %v, output:\n%s", err, said)
	}
	other, err := anchor.VerifierKey("example.org/log", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{6}, ed25519.SeedSize)).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := verifyWith(a.path, anchorFlags{LogKey: []string{other}}); !errors.Is(err, errFoundBad) || !strings.Contains(said, `FAIL  x.tar.gz.tlog-proof: `) {
		t.Errorf("another log: error %v, output:\n%s", err, said)
	}
	if _, err := verifyWith(a.path, anchorFlags{LogKey: []string{other, a.logKey}}); err != nil {
		t.Errorf("one of two logs: error %v", err)
	}
	if _, err := verifyWith(a.path, anchorFlags{LogKey: []string{other + "\n" + a.logKey + "\n"}}); err != nil {
		t.Errorf("one of two lines: error %v", err)
	}
}

// A required file that is missing, or belongs to another bundle, is a fault.
func TestFileNextToABundleIsRequired(t *testing.T) {
	a, b := makeAnchored(t), makeAnchored(t)
	b.log(t, strings.Repeat("ab", 32))
	proof, err := os.ReadFile(b.path + ".tlog-proof")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path+".tlog-proof", proof, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := verifyWith(a.path, anchorFlags{LogKey: []string{a.logKey}}); !errors.Is(err, errFoundBad) || !strings.Contains(said, "does not hold this bundle") {
		t.Errorf("another bundle's proof: error %v, output:\n%s", err, said)
	}
	if err := errors.Join(os.Remove(a.path+".tsr"), os.Remove(a.path+".tlog-proof")); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string]anchorFlags{
		"there is no time stamp":         {TSACert: a.authority.Roots},
		"there is no proof of inclusion": {LogKey: []string{a.logKey}},
	} {
		if said, err := verifyWith(a.path, flags); !errors.Is(err, errFoundBad) || !strings.Contains(said, want) || strings.Contains(said, "PASS") {
			t.Errorf("error %v, want output with %q:\n%s", err, want, said)
		}
	}
	for _, flags := range []anchorFlags{{TSACert: "nowhere.pem"}, {TSACert: a.path}, {LogKey: []string{"nonsense"}}} {
		if _, err := verifyWith(a.path, flags); exitCode(err) != exitUsage {
			t.Errorf("%+v: error %v", flags, err)
		}
	}
}

// keyEndedAt writes a key list on which the bundle's key ended at a time, and returns
// the values of the flags for it.
func keyEndedAt(t *testing.T, end time.Time) (pin, list string) {
	t.Helper()
	ring := new(keyring.Ring)
	for _, a := range []keyring.Addition{
		{Purpose: keyring.Session, Key: seededKey(7), IssuedAt: time.Unix(session().ExportedAt-3600, 0)},
		{Purpose: keyring.Session, Key: seededKey(8), Previous: seededKey(7), IssuedAt: end, NotBefore: end, Retire: end},
	} {
		grown, err := ring.Add(a)
		if err != nil {
			t.Fatal(err)
		}
		ring = grown
	}
	list = filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(list, ring.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(seededKey(8).Public().(ed25519.PublicKey)), list
}

// A stamp from after the end of the key proves nothing: a stolen key that was
// ended can sign a bundle with an earlier date. A late stamp from before the end of the key
// is accepted: the authority may have been unavailable.
func TestStampTimeIsComparedWithKeyAndExport(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name           string
		exported, ends time.Time
		want           string // expected in the output
		good           bool
	}{
		{"backdated, stamped after the key's end", now.Add(-48 * time.Hour), now.Add(-time.Hour), "it does not show that the bundle was signed before", false},
		{"seconds after the key's end", now.Add(-48 * time.Hour), now.Add(-2 * time.Second), "it does not show that the bundle was signed before", false},
		{"late, before the key's end", now.Add(-48 * time.Hour), now.Add(time.Hour), "48h0m", true},
		{"at once", now, now.Add(time.Hour), "signed at the latest 20", true},
		{"dated after its stamp", now.Add(30 * time.Minute), now.Add(time.Hour), "a bundle is stamped after it was exported", false},
	} {
		a := makeAnchoredAt(t, c.exported.Unix())
		pin, list := keyEndedAt(t, c.ends)
		var out bytes.Buffer
		command := bundleVerifyCommand{Paths: []string{a.path}, JSON: true, trustFlags: trustFlags{Key: []string{pin}, Keyring: list, anchorFlags: anchorFlags{TSACert: a.authority.Roots}}}
		err := command.Run(t.Context(), &console{out: &out})
		if (err == nil) != c.good || !c.good && !errors.Is(err, errFoundBad) || !strings.Contains(out.String(), c.want) ||
			strings.Contains(out.String(), `"intact":true`) != c.good {
			t.Errorf("%s: error %v, want output with %q:\n%s", c.name, err, c.want, &out)
		}
	}
}

// Without a key list the end of the key is unknown.
func TestStampWithoutAKeyList(t *testing.T) {
	a := makeAnchored(t)
	said, err := verifyWith(a.path, anchorFlags{TSACert: a.authority.Roots})
	if err != nil || !strings.Contains(said, "NOT CHECKED: whether the key had ended by the time of the stamp.") {
		t.Errorf("error %v, output:\n%s", err, said)
	}
}

// A report names the time stamp and the proof next to a bundle if they are verified, and an export
// takes them along.
func TestReportAndExportOfAnchoredBundle(t *testing.T) {
	a := makeAnchored(t)
	trust := trustFlags{anchorFlags: anchorFlags{TSACert: a.authority.Roots, LogKey: []string{a.logKey}}}
	var page bytes.Buffer
	if err := (&bundleReportCommand{File: a.path, trustFlags: trust}).Run(t.Context(), &console{out: &page, errs: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">x.tar.gz.tsr</span><div class=\"soft\">signed at the latest 20", ">x.tar.gz.tlog-proof</span><div class=\"soft\">leaf 0 of the log", "Whoever holds the key of this time stamp or log confirms this file: leaf 0 of the log"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	out := filepath.Join(t.TempDir(), "month.tar")
	export := bundleExportCommand{Out: out, trustFlags: trust, sealedFlags: sealedFlags{Bundles: filepath.Dir(a.path)}}
	if err := export.Run(t.Context(), &console{out: io.Discard, errs: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	for _, suffix := range []string{".tsr", ".tlog-proof"} {
		beside, readErr := os.ReadFile(a.path + suffix)
		if err != nil || readErr != nil || !bytes.Contains(archive, beside) || !bytes.Contains(archive, []byte("plumbline-export/bundles/x.tar.gz"+suffix)) {
			t.Errorf("the archive does not have %s: %v %v", suffix, err, readErr)
		}
	}
	export.LogKey, export.Out = []string{}, filepath.Join(t.TempDir(), "again.tar")
	export.TSACert = anchortest.New(t).Roots
	if err := export.Run(t.Context(), &console{out: io.Discard, errs: os.Stderr}); !errors.Is(err, errFoundBad) {
		t.Errorf("a stamp of another authority: %v", err)
	}
}
