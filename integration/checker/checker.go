package checker

import (
	"testing"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Site is the pipeline to check. Nothing may be under way in it: see AwaitRest.
type Site struct {
	Client  *stream.Client
	Store   *store.Store   // as a user who may read everything
	Bundles string         // the exporter's bundle directory
	Kept    reconcile.Site // all that is kept, the same included
}

// Seen is how much was checked, so that a test can demand exact numbers.
type Seen struct {
	Traces      int // stored: (agent, trace id, digest)
	Copies      int // rows of them that are not merged away yet
	Repeated    int // receipts of traces that had one: they were judged again
	DeadLetters int // of traces that were in the stream
	Unjudged    int // traces whose card is unknown
	Points      int // drift points
	Late        int // those of traces that came too late to be used
	Alerts      int // drift alerts
	Sessions    int
	Bundles     int
	Sealed      int // traces in bundles
	Lost        int // acknowledged, and neither a row nor a dead letter
	Doubled     int // records that are seen twice, or are a row and a dead letter
}

// Check reports every broken invariant as an error of the test. acked are the
// digests that publishers were told to be durable.
func Check(t testing.TB, site Site, acked []schema.Digest) Seen {
	t.Helper()
	w := walk{Site: site, TB: t}
	w.messages = w.readStream()
	w.traces = w.readTraces()
	w.registry = w.readCards()

	w.checkDelivery(acked)
	w.checkKept()
	w.checkCopies()
	w.checkVerdicts()
	w.checkDrift()
	bundles, err := site.Store.Bundles(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.checkSessionVerdicts(bundles)
	w.checkChains(bundles)
	w.checkClaims(bundles)
	w.checkOwners()
	w.checkLeases()
	w.checkAcks()
	return w.seen
}

// walk is one check of a site.
type walk struct {
	Site
	testing.TB

	messages []stream.Message // of stream TRACES, all of them
	traces   []*store.StoredTrace
	registry *cards.Registry
	seen     Seen
}

// params are the drift stage's: the published constants.
var params = drift.DefaultParams()
