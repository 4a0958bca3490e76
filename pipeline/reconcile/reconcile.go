package reconcile

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// Site names the places to compare. An empty directory is out of reach: its contents are not
// compared, and the summary says so.
type Site struct {
	Client  *stream.Client
	Store   *store.Store // with a user who may read everything
	Bundles string       // directory of the bundles
	Ledger  string       // of the operator's ledger
	Log     string       // directory of the transparency log

	KeyList string              // the file of the key list; without a list only Pinned may have signed
	Pinned  []ed25519.PublicKey // keys known from elsewhere; empty: every session key of the list

	Stamps      string              // directory of the list of bundles that wait for a time stamp
	Authorities []*x509.Certificate // trusted certificates of time stamps; empty: none is checked

	Now time.Time // the time for retention; zero: the broker's time when the comparison begins
}

// Run compares everything. It calls report with each difference. Its error is a failure of the
// comparison itself.
func Run(ctx context.Context, site Site, report func(*Difference) error) (*Summary, error) {
	c := &check{Site: site, report: report, summary: Summary{StartedAt: time.Now().UTC(), ByKind: map[Kind]int{}, Skipped: []string{}}}
	for _, step := range []func(context.Context) error{
		c.readKeys, c.readHorizon, c.readCards, c.readSeals, c.openLog, c.readFiles,
		c.checkTraces, c.checkAlerts, c.checkBundles, c.checkLedger, c.checkLog, c.checkStamps,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	c.summary.FinishedAt = time.Now().UTC()
	return &c.summary, c.close()
}

// check is one comparison. The order of its steps allows it to run while the pipeline works: what
// an earlier step read, a later step must find.
type check struct {
	Site
	report  func(*Difference) error
	summary Summary

	keys     *keyring.Ring // nil: there is no list
	horizon  horizon
	registry *cards.Registry
	sessions map[store.SessionKey]*sealedSession // from bucket seals
	files    map[string]*bundleFile              // by path below Bundles
	recorded map[string]*events.Claim            // the content of each bundle row, by SHA-256
	log      *tlog.View                          // opened before the bundles are read, so every leaf of it has its file
	logKeys  []note.Verifier                     // keys that may have signed the log's checkpoint
	heads    map[string]bool                     // the places whose kept head of the log was reported already
}

// differ reports a difference.
func (c *check) differ(d Difference, format string, args ...any) error {
	d.What, d.Remedy = fmt.Sprintf(format, args...), remedies[d.Kind]
	c.summary.Differences++
	c.summary.ByKind[d.Kind]++
	return c.report(&d)
}

func (c *check) skip(what string) { c.summary.Skipped = append(c.summary.Skipped, what) }

func (c *check) count() *Counts { return &c.summary.Counts }

// readCards reads every card, since cards define how long traces are retained.
func (c *check) readCards(ctx context.Context) error {
	registry, err := cards.Open(ctx, c.Client, 0)
	if err != nil {
		return err
	}
	if err := registry.Load(ctx, nil); err != nil {
		return fmt.Errorf("read the cards: %w", err)
	}
	c.registry = registry
	return nil
}

// expired reports whether retention may have removed what was received from an agent at that
// time.
func (c *check) expired(agentID string, received time.Time) bool {
	until := c.registry.RetainUntil(agentID, received)
	return !until.IsZero() && until.Before(c.Now)
}

func (c *check) close() error {
	if c.log == nil {
		return nil
	}
	return c.log.Close()
}

// isDir reports whether path is an existing directory.
func isDir(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}
