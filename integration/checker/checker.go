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

// Site is the pipeline to check. It must have no work left: see AwaitRest.
type Site struct {
	Client  *stream.Client
	Store   *store.Store   // as a user who may read everything
	Bundles string         // the exporter's bundle directory
	Kept    reconcile.Site // everything that is stored; includes the same client and store
	Drift   drift.Params   // of the drift stage
}

// Seen counts what was checked, so that a test can require exact numbers.
type Seen struct {
	Traces      int // stored: (agent, trace id, digest)
	Copies      int // their rows that are not merged away yet
	Repeated    int // receipts of traces that already had one: they were judged again
	DeadLetters int // of traces that were in the stream
	Unjudged    int // traces whose card is unknown
	Points      int // drift points
	Late        int // points of traces that came too late to be used
	Alerts      int // drift alerts
	Sessions    int
	Bundles     int
	Sealed      int // traces in bundles
	Lost        int // acknowledged, and neither a row nor a dead letter
	Doubled     int // records that are visible twice, or are both a row and a dead letter
}

// Check reports every broken invariant as an error of the test. acked are the
// digests that were acknowledged to publishers.
func Check(t testing.TB, site Site, acked []schema.Digest) Seen {
	t.Helper()
	k := checker{Site: site, TB: t}
	k.messages = k.readAll(stream.Traces)
	k.traces = k.readTraces()
	k.registry = k.readCards()

	k.checkDelivery(acked)
	k.checkKept()
	k.checkCopies()
	k.checkVerdicts()
	k.checkDrift()
	bundles, err := site.Store.Bundles(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	k.checkSessionVerdicts(bundles)
	k.checkChains(bundles)
	k.checkClaims(bundles)
	k.checkOwners()
	k.checkLeases()
	k.checkShares()
	k.checkAcks()
	return k.seen
}

// checker is one check of a site.
type checker struct {
	Site
	testing.TB

	messages []stream.Message // of stream TRACES, all of them
	traces   []*store.StoredTrace
	registry *cards.Registry
	seen     Seen
}
