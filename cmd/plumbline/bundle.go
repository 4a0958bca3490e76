package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/durable"
)

type bundleCommands struct {
	Verify bundleVerifyCommand `cmd:"" help:"Verify bundles without trusting anything inside them."`
	Report bundleReportCommand `cmd:"" help:"Write a page about a bundle, for a browser or a printer."`
	Viewer bundleViewerCommand `cmd:"" help:"Print an HTML page that verifies bundles in a browser, offline."`
	LS     bundleListCommand   `cmd:"" name:"ls" help:"List sealed bundles."`
	Get    bundleGetCommand    `cmd:"" help:"Copy one sealed bundle, and verify the copy."`
	Export bundleExportCommand `cmd:"" help:"Write the bundles of a range of time into one archive that Python alone verifies."`
	Seal   bundleSealCommand   `cmd:"" help:"Seal recorded rows into a bundle, without any service."`
	Show   bundleShowCommand   `cmd:"" help:"Show a bundle's manifest and rows."`
}

type bundleVerifyCommand struct {
	Paths            []string `arg:"" name:"path" help:"Bundles (.tar.gz), or directories to search for bundles."`
	RequireSignature bool     `help:"Treat an unsigned bundle as not intact; --key implies this."`
	JSON             bool     `help:"Print one JSON object for each bundle."`

	trustFlags
}

// Help returns the examples.
func (*bundleVerifyCommand) Help() string {
	return examples(
		"plumbline bundle verify aivs_proof_s-1.tar.gz --key operator.pub",
		"plumbline bundle verify plumbline-data/bundles --key operator.pub --keyring keys.jsonl",
	)
}

// trustFlags name whose signatures and whose evidence about bundles are trusted.
type trustFlags struct {
	Key     []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that must have signed, as hexadecimal digits or a file. If it is repeated, one of the keys must have signed."`
	Keyring string   `type:"path" placeholder:"FILE" help:"Key list (keys.jsonl): any session key that one of --key leads to may have signed while it was valid."`

	anchorFlags
}

// trusted is what the flags say.
type trusted struct {
	options aivs.Options
	anchors *anchor.Trust
	ring    *keyring.Ring // nil if no key list is named
}

func (f *trustFlags) trust() (*trusted, error) {
	t := &trusted{anchors: new(anchor.Trust)}
	var err error
	if t.options.Keys, err = readKeys(f.Key); err != nil {
		return nil, err
	}
	if t.ring, err = readRing(f.Keyring, t.options.Keys); err != nil {
		return nil, err
	}
	t.follow(t.ring)
	if t.anchors.Authorities, err = authorities(f.TSACert); err != nil {
		return nil, err
	}
	t.anchors.Logs, err = logKeys("--log-key", f.LogKey)
	return t, err
}

// follow also accepts the session keys of a key list that a required key leads to.
func (t *trusted) follow(ring *keyring.Ring) {
	if t.ring, t.anchors.Keys = ring, ring; ring == nil {
		return
	}
	keys := t.options.Keys
	t.options.Signer = func(key ed25519.PublicKey, exportedAt time.Time) error {
		return ring.Accept(keys, key, keyring.Session, exportedAt)
	}
}

// verified is a report with the bundle's path.
type verified struct {
	Path string `json:"path"`
	*aivs.Report
}

// Run verifies every bundle and reports how many are bad.
func (c *bundleVerifyCommand) Run(ctx context.Context, con *console) error {
	trusted, err := c.trust()
	if err != nil {
		return err
	}
	trusted.options.RequireSignature = c.RequireSignature
	paths, searched, err := bundlesIn(c.Paths)
	if err != nil {
		return err
	}
	between, good := 0, []aivs.Located{}
	for _, path := range paths {
		report, err := judgeFile(ctx, path, trusted.options, trusted.anchors, len(paths) == 1)
		if err != nil {
			return err
		}
		if report.Intact {
			good = append(good, aivs.Located{Path: path, Report: report})
		}
		if err := c.show(verdictWriter{con.out}, &verified{path, report}, len(paths) == 1); err != nil {
			return err
		}
	}
	if searched {
		collection := aivs.CheckCollection(good)
		between = len(collection.Faults)
		if err := c.showCollection(verdictWriter{con.out}, collection); err != nil {
			return err
		}
	}
	if len(paths) > 1 && !c.JSON { // a full report contains this itself
		_, err := fmt.Fprintf(con.out, "%d bundles, %d intact, %d not, %d faults between bundles\n\nNot proven:\n  %s\n",
			len(paths), len(good), len(paths)-len(good), between, strings.Join(aivs.NotProven(), "\n  "))
		if err != nil {
			return err
		}
	}
	return found(nil, len(good) == len(paths) && between == 0)
}

// judgeFile verifies a bundle and the files next to it. If it is one of many and cannot be
// read, it counts as bad and the others are still verified.
func judgeFile(ctx context.Context, path string, options aivs.Options, trust *anchor.Trust, alone bool) (*aivs.Report, error) {
	report, err := verifyFile(ctx, path, options)
	var stamp, proof []byte
	if err == nil && report.Intact {
		stamp, err = readBeside(path+anchor.TimestampSuffix, anchor.MaxReply)
	}
	if err == nil && report.Intact {
		proof, err = readBeside(path+anchor.ProofSuffix, anchor.MaxProof)
	}
	if err == nil {
		trust.Check(report, filepath.Base(path), stamp, proof)
	}
	if err != nil && !alone && ctx.Err() == nil {
		return aivs.Unreadable(err), nil
	}
	return report, err
}

// showCollection writes the result of the checks between the bundles of a directory.
func (c *bundleVerifyCommand) showCollection(w io.Writer, collection *aivs.Collection) error {
	if c.JSON {
		return writeJSON(w, map[string]*aivs.Collection{"collection": collection})
	}
	out := lineWriter{w: w}
	for _, f := range collection.Faults {
		out.printf("FAIL  %s: %s\n", printable(f.Where), printable(f.Message))
	}
	for _, late := range collection.Late {
		out.printf("LATE  %s\n", printable(late))
	}
	for _, session := range collection.Open {
		out.printf("OPEN  %s: its last part is not here, or is not sealed yet\n", printable(session))
	}
	return out.err
}

// show writes a report: in full for one bundle, one line for each of many.
func (c *bundleVerifyCommand) show(w io.Writer, v *verified, alone bool) error {
	switch {
	case c.JSON:
		return writeJSON(w, v)
	case alone:
		return v.WriteText(w)
	}
	word, _, _ := strings.Cut(v.Conclusion(), ":")
	verdict := ""
	if v.VerdictOver > 0 {
		verdict = ", recorded verdict not read"
	}
	if v.Verdict != nil {
		verdict = ", recorded verdict " + strings.ToUpper(string(v.Verdict.RecommendedAction))
	}
	out := lineWriter{w: w}
	out.printf("%s  %s  %s, session %q, %d rows, signature %s%s\n",
		word, printable(v.Path), v.Dialect, v.SessionID, v.Rows, v.SignatureText(), verdict)
	for _, f := range v.Faults {
		out.printf("      FAIL  %s\n", f.Line())
	}
	return out.err
}

func verifyFile(ctx context.Context, path string, options aivs.Options) (*aivs.Report, error) {
	file, err := openPlain(ctx, path)
	if err != nil {
		return nil, err
	}
	report, err := aivs.Verify(file, options)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", path, err)
	}
	return report, nil
}

// bundlesIn returns the files, and the bundles in the directories and in their subdirectories,
// including links to bundles. It does not follow links to directories, which could form a cycle.
// searched reports whether there were directories.
func bundlesIn(paths []string) (found []string, searched bool, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", errNothing, err)
		}
		if !info.IsDir() {
			found = append(found, path)
			continue
		}
		searched = true
		root := path + string(filepath.Separator) // the path may itself be a link
		err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || isBundle(name, entry) { // verifying a directory that cannot be searched fails with the reason
				found = append(found, name)
			}
			return nil
		})
		if err != nil {
			return nil, false, fmt.Errorf("search %s: %w", path, err)
		}
	}
	if len(found) == 0 {
		return nil, false, fmt.Errorf("%w: no .tar.gz in %s", errNothing, strings.Join(paths, ", "))
	}
	return found, searched, nil
}

// isBundle reports whether an entry has the name of a bundle and is a file, a link to a
// file, or a dangling link.
func isBundle(name string, entry fs.DirEntry) bool {
	if !strings.HasSuffix(name, ".tar.gz") {
		return false
	}
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	target, err := os.Stat(name)
	return err != nil || target.Mode().IsRegular()
}

// anchorFlags are the requirements for the files next to a bundle. A file whose flag is given
// is required: otherwise nobody would notice that a stamp or proof was removed.
type anchorFlags struct {
	TSACert string   `name:"tsa-cert-file" aliases:"tsa-cert" type:"path" placeholder:"FILE" help:"Certificates (PEM) of a time stamping authority: the file next to the bundle (.tsr) must have its stamp."`
	LogKey  []string `sep:"none" placeholder:"KEY|FILE" help:"Key of a transparency log (name+hash+base64, or several such lines): the file next to the bundle (.tlog-proof) must prove that the bundle is in that log, or in one of several."`
}

// logKeys reads the keys of transparency logs from a flag.
func logKeys(flag string, given []string) (keys []note.Verifier, err error) {
	for _, named := range given {
		for line := range strings.Lines(cmp.Or(contentOf(named), "\n")) { // a log publishes one line for each of its keys
			key, err := anchor.ParseVerifier(line)
			if err != nil {
				return nil, usagef("%s %q: %w", flag, named, err)
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// contentOf returns the content of the file that a flag names, or else the flag's value itself.
func contentOf(value string) string {
	if content, err := durable.ReadPlain(value, maxSmallFile); err == nil {
		return string(content)
	}
	return value
}

// authorities reads the file of --tsa-cert-file.
func authorities(path string) ([]*x509.Certificate, error) {
	if path == "" {
		return nil, nil
	}
	text, err := durable.ReadPlain(path, maxSmallFile)
	if err != nil {
		return nil, usagef("--tsa-cert-file: %w", err)
	}
	trusted, err := anchor.Authorities(text)
	if err != nil {
		return nil, usagef("--tsa-cert-file %s: %w", path, err)
	}
	return trusted, nil
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
	return text, nil
}
