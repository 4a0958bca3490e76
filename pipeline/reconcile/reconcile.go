package reconcile

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/tlog"
	"github.com/plumbline/plumbline/pipeline/walk"
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
	c := &check{Site: site, report: report, summary: Summary{StartedAt: time.Now().UTC(), ByKind: map[Kind]int{}, Skipped: []string{}},
		heads: map[string]bool{}}
	for _, step := range []func(context.Context) error{
		c.readKeys, c.readHorizon, c.readCards, c.readSeals, c.openLog, c.readFiles,
		c.checkTraces, c.checkAlerts, c.checkBundles, c.checkLedger, c.checkLog, c.checkStamps,
	} {
		if c.fail(step(ctx)); c.failed != nil {
			break
		}
	}
	if c.log != nil {
		c.fail(c.log.Close())
	}
	if c.failed != nil {
		return nil, c.failed
	}
	c.summary.FinishedAt = time.Now().UTC()
	return &c.summary, nil
}

// check is one comparison. The order of its steps allows it to run while the pipeline works: what
// an earlier step read, a later step must find.
type check struct {
	Site
	report  func(*Difference) error
	summary Summary
	failed  error // the first failure; nothing is reported after it, and loops end

	keys     *keyring.Ring // nil: there is no list
	horizon  horizon
	registry *cards.Registry
	seals    *stream.Bucket
	sessions map[store.SessionKey]*sealedSession // from bucket seals
	files    map[string]*bundleFile              // by path below Bundles
	recorded map[string]*events.Claim            // the content of each bundle row, by SHA-256
	log      *tlog.View                          // opened before the bundles are read, so every leaf of it has its file
	logKeys  []note.Verifier                     // keys that may have signed the log's checkpoint
	heads    map[string]bool                     // the places whose kept head of the log was reported already
}

func (c *check) differ(d Difference, format string, args ...any) {
	if c.failed != nil {
		return
	}
	d.What, d.Remedy = fmt.Sprintf(format, args...), remedies[d.Kind]
	c.summary.Differences++
	c.summary.ByKind[d.Kind]++
	c.failed = c.report(&d)
}

// fail records a failure of the comparison. Only the first one counts.
func (c *check) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}

func (c *check) skip(what string) { c.summary.Skipped = append(c.summary.Skipped, what) }

func (c *check) count() *Counts { return &c.summary.Counts }

// horizon is the progress of all services when the comparison began. Everything up to it has been
// stored.
type horizon struct {
	floor             uint64 // the verifier is done with every message of TRACES up to this sequence
	traces            stream.State
	receipts          stream.State
	deadLettersStored bool // every dead letter written until then is a row

	measured  [subject.Partitions]uint64 // drift is done with every message of the partition up to this sequence
	measuring bool                       // drift is done with at least one message
}

func (c *check) readHorizon(ctx context.Context) error {
	floor, states, err := walk.Verified(ctx, c.Client, stream.Traces, stream.Receipts, stream.DeadLetters)
	if err != nil {
		return err
	}
	h, letters := &c.horizon, states[2]
	h.floor, h.traces, h.receipts = floor, states[0], states[1]
	if c.Now.IsZero() {
		c.Now = h.traces.Now
	}
	if h.measured, err = walk.Measured(ctx, c.Client); err != nil {
		return err
	}
	h.measuring = h.measured != [subject.Partitions]uint64{}
	h.deadLettersStored, err = c.await(ctx, func() (bool, error) {
		progress, err := c.Client.ConsumerProgress(ctx, stream.DeadLetters, stream.DeadLetterConsumer)
		return progress.AckFloor >= letters.LastSequence, err
	})
	if err == nil && !h.deadLettersStored {
		c.skip("dead letters that are not in the database yet: is the verifier running?")
	}
	return err
}

// patience is how long a step waits for work in progress.
const patience = 10 * time.Second

// await polls holds until it returns true, for at most patience.
func (c *check) await(ctx context.Context, holds func() (bool, error)) (bool, error) {
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := holds()
		if done || err != nil {
			return done, err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// readCards reads every card, since cards define how long traces are retained.
func (c *check) readCards(ctx context.Context) (err error) {
	if c.registry, err = cards.Open(ctx, c.Client, 0); err != nil {
		return err
	}
	if err := c.registry.Load(ctx, nil); err != nil {
		return fmt.Errorf("read the cards: %w", err)
	}
	return nil
}

// expired reports whether retention may have removed what was received from an agent at that
// time.
func (c *check) expired(agentID string, received time.Time) bool {
	until := c.registry.RetainUntil(agentID, received)
	return !until.IsZero() && until.Before(c.Now)
}

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

// place is a position: the creation time of the stream, and the sequence in it.
type place struct {
	stream   time.Time
	sequence uint64
}

func (p place) compare(q place) int {
	return cmp.Or(p.stream.Compare(q.stream), cmp.Compare(p.sequence, q.sequence))
}

// cursor reads rows that are sorted by place. An error ends the rows and fails the check.
type cursor[T any] struct {
	at    func(*T) place
	fail  func(error)
	next  func() (*T, error, bool)
	close func()
	head  *T // nil at the end
}

// open reads the first row. The caller must close the cursor.
func open[T any](c *check, rows iter.Seq2[*T, error], at func(*T) place) *cursor[T] {
	cursor := &cursor[T]{at: at, fail: c.fail}
	cursor.next, cursor.close = iter.Pull2(rows)
	cursor.advance()
	return cursor
}

func (c *cursor[T]) advance() {
	row, err, _ := c.next()
	if err != nil {
		c.fail(err)
		row = nil
	}
	c.head = row
}

// take returns the rows at p. It passes the rows before p to unmatched.
func (c *cursor[T]) take(p place, unmatched func(*T)) (rows []*T) {
	for ; c.head != nil && c.at(c.head).compare(p) < 0; c.advance() {
		unmatched(c.head)
	}
	for ; c.head != nil && c.at(c.head).compare(p) == 0; c.advance() {
		rows = append(rows, c.head)
	}
	return rows
}

func (c *cursor[T]) rest(unmatched func(*T)) {
	for ; c.head != nil; c.advance() {
		unmatched(c.head)
	}
}
