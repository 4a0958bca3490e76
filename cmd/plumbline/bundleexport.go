package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/export"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/report"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

type bundleExportCommand struct {
	sealedFlags `embed:""`
	rangeFlags  `embed:""`
	Out         string `short:"o" required:"" placeholder:"FILE" help:"Archive to write (.tar). Nothing is overwritten."`
	Reports     bool   `help:"Also write a page about each bundle into the archive, as bundle report does."`
	IndexKey    string `type:"path" placeholder:"FILE" help:"Private key that signs the index. Default: that of the running up, if you may read it. Without a signature nobody notices if somebody leaves out bundles together with their entries."`
	trustFlags
}

// Help returns the examples.
func (*bundleExportCommand) Help() string {
	return examples("plumbline bundle export --agent did:web:buyer.example --from 2026-10-01 --to 2026-11-01 -o october.tar")
}

// Run verifies the bundles of the range, and writes them into one archive.
func (c *bundleExportCommand) Run(ctx context.Context, con *console) error {
	interval, err := c.interval(&c.rangeFlags)
	if err != nil {
		return err
	}
	if err := mustBeNew(c.Out); err != nil {
		return err
	}
	list, err := c.find(ctx, &interval)
	if err != nil {
		return err
	}
	if list.database && c.Tenant != defaultTenant {
		interval.Tenant = c.Tenant
	}
	archive := &export.Archive{Range: interval, Missing: list.missing, MissingKnown: list.database}
	trusted, err := c.requirements(list, archive)
	if err != nil {
		return err
	}
	if archive.Key, err = c.indexKey(list, con); err != nil {
		return err
	}
	for _, b := range list.bundles {
		if err := c.add(ctx, archive, list, b, trusted); err != nil {
			return err
		}
	}
	index, err := writeArchive(ctx, c.Out, archive)
	if err != nil {
		return err
	}
	s := index.Summary
	out := lineWriter{w: verdictWriter{con.out}}
	out.printf("%s: %d bundles of %d sessions, %d intact, %d not, %d faults between bundles, %d missing\n",
		printable(c.Out), s.Bundles, s.Sessions, s.Intact, s.NotIntact, len(index.Between), s.Missing)
	for _, m := range index.Missing {
		out.printf("MISSING  agent %q, session %q: %s\n", m.AgentID, m.SessionID, printable(m.Why))
	}
	if !index.MissingKnown {
		out.printf("SKIP  %s\n", export.NotKnown)
	}
	if s.Bundles+s.Missing == 0 {
		fmt.Fprintf(con.errs, "plumbline: nothing is recorded of %s. Is the agent's id the right one? plumbline bundle ls lists what there is.\n", interval.String())
	}
	return found(out.err, index.Good())
}

// indexKey returns the key that signs the index: the one that is named, or that of the running up.
// It returns nil if there is none.
func (c *bundleExportCommand) indexKey(list *catalogue, con *console) (ed25519.PrivateKey, error) {
	if c.IndexKey != "" {
		return loadKey(c.IndexKey, keyring.Session)
	}
	if list.keyList == "" || !list.database {
		return nil, nil
	}
	key, err := loadKey(keystore.In(filepath.Dir(list.keyList), keyring.Session).Path, keyring.Session)
	if err != nil {
		fmt.Fprintf(con.errs, "plumbline: the index is not signed: %s\n", errorText(err))
		return nil, nil
	}
	return key, nil
}

// mustBeNew returns an error if a file that a command is to write exists. It could be evidence.
func mustBeNew(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return usagef("%s exists and is left as it is: name another file with -o", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// requirements reads the flags. Without --key the key of the running up is required. It also adds the key
// list to the archive.
func (c *bundleExportCommand) requirements(list *catalogue, archive *export.Archive) (*trusted, error) {
	if c.Key == nil && list.publicKey != "" {
		c.Key = []string{list.publicKey}
	}
	trusted, err := c.trust()
	if err != nil {
		return nil, err
	}
	ring := trusted.ring
	if ring == nil && list.keyList != "" {
		ring, err = keystore.ReadList(list.keyList)
		if errors.Is(err, fs.ErrNotExist) {
			ring, err = nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if ring == nil {
		return trusted, nil
	}
	archive.KeyList = ring.Text()
	if len(trusted.options.Keys) > 0 && listed(ring, trusted) {
		trusted.follow(ring)
	}
	return trusted, nil
}

// listed reports whether a required key is a session key of a list. Otherwise the list leads
// nowhere, and only the required keys count.
func listed(ring *keyring.Ring, trusted *trusted) bool {
	for _, key := range trusted.options.Keys {
		if k, ok := ring.Find(key); ok && k.Purpose == keyring.Session {
			return true
		}
	}
	return false
}

// add verifies a bundle and adds it to the archive. If its file is missing, that is noted.
func (c *bundleExportCommand) add(ctx context.Context, archive *export.Archive, list *catalogue, b *sealedBundle, trusted *trusted) error {
	path := filepath.Join(list.dir, filepath.FromSlash(b.File))
	verified, err := readSealed(ctx, list.dir, path, trusted.options)
	if errors.Is(err, fs.ErrNotExist) {
		archive.Missing = append(archive.Missing, export.Missing{AgentID: b.AgentID, SessionID: b.SessionID, Part: b.Part,
			First: b.First, Last: b.Last, Why: fmt.Sprintf("the file of part %d, %s, is not in the bundle directory", b.Part, b.File)})
		return nil
	}
	if err != nil {
		return err
	}
	if b.SHA256 != verified.SHA256 {
		verified.report.Fault("archive", "its SHA-256 is not the one that the operator's database recorded when it was sealed, %s", b.SHA256)
	}
	item := export.Bundle{Name: b.File, Report: verified.report, Times: export.Times{First: verified.First, Last: verified.Last},
		InRange: !verified.report.Intact || archive.Range.Holds(verified.First, verified.Last), // of a bundle that is not intact nobody knows
		Open:    func() (io.ReadCloser, error) { return durable.OpenPlain(path) }}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	item.Size = info.Size()
	beside := map[string][]byte{}
	for suffix, most := range map[string]int64{anchor.TimestampSuffix: anchor.MaxReply, anchor.ProofSuffix: anchor.MaxProof} {
		if beside[suffix], err = readBeside(path+suffix, most); err != nil {
			return err
		}
	}
	trusted.anchors.Check(verified.report, filepath.Base(path), beside[anchor.TimestampSuffix], beside[anchor.ProofSuffix])
	for _, suffix := range []string{anchor.TimestampSuffix, anchor.ProofSuffix} {
		if beside[suffix] != nil {
			item.SideFiles = append(item.SideFiles, export.SideFile{Suffix: suffix, Data: beside[suffix]})
		}
	}
	if c.Reports {
		item.Page = func() ([]byte, error) {
			page, again, err := pageOf(ctx, path, report.DefaultFull, trusted)
			if err == nil && again.SHA256 != verified.SHA256 {
				err = fmt.Errorf("%s was changed while it was exported: run the command again", path)
			}
			return page, err
		}
	}
	archive.Bundles = append(archive.Bundles, item)
	return nil
}

// writeArchive writes the archive completely or not at all, also one that is too large for memory.
func writeArchive(ctx context.Context, path string, archive *export.Archive) (index *export.Index, err error) {
	if err := durable.RemoveStaged(path); err != nil { // of an export that was killed
		return nil, err
	}
	staged, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("write the archive: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(staged.Name()))
		}
	}()
	index, err = archive.Write(&stoppable{ctx, staged})
	if err == nil {
		err = errors.Join(staged.Chmod(0o644), staged.Sync())
	}
	if err = errors.Join(err, staged.Close()); err != nil {
		return nil, err
	}
	if err = mustBeNew(path); err != nil {
		return nil, err
	}
	return index, durable.Rename(staged.Name(), path)
}

// defaultTenant is the default of --tenant.
const defaultTenant = "default"

// stoppable writes until its context ends.
type stoppable struct {
	ctx context.Context // an io.Writer cannot get it in another way
	w   io.Writer
}

func (s *stoppable) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return s.w.Write(p)
}
