package session

// The limits of the memory of a Judge. The exporter's default of 10,000 traces a part is far
// below all of them.
const (
	maxGaps      = 16_384 // ranges of missing numbers
	maxKnown     = 65_536 // trace ids, the newest
	maxPriors    = 256    // prior traces of one trace that are checked
	maxEdges     = 16     // prior traces of one trace that a search for circles follows
	maxAsked     = 1_000  // prior traces that are not in the part
	maxOpen      = 1_024  // escalations without an answer
	maxActs      = 16     // executions under one open escalation
	maxDecisions = 1_024  // decisions of the principal, the newest
	maxDeclined  = 256    // actions that the agent denied, the newest
	maxSuspected = 256    // executions of denied actions, the newest, kept until the end
	maxListed    = 100    // findings of one type
	maxWalk      = 4_096  // steps through prior traces in the search for a circle

	// MaxNumbers is how many numbered traces of other sessions one part is compared with.
	MaxNumbers = 50_000

	maxMissing    = 100      // ranges listed in an Answers
	maxConditions = 64       // of one approval, as in package aap
	maxCarry      = 12 << 10 // bytes of ids and texts of each kind for the next part
	maxCarryItems = 64       // of each kind
)
