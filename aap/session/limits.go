package session

// What a Judge keeps at most. The defaults of the exporter (10,000 traces a part)
// stay far within all of them.
const (
	maxGaps      = 16_384 // ranges of missing numbers
	maxKnown     = 65_536 // trace ids, the newest
	maxPriors    = 256    // prior traces of one trace
	maxEdges     = 16     // prior traces of one trace that a search for circles follows
	maxAsked     = 1_000  // prior traces that are not in the part
	maxOpen      = 1_024  // escalations without an answer
	maxActs      = 16     // executions under one of them
	maxDecisions = 1_024  // of the principal, the newest
	maxDeclined  = 256    // by the agent itself, the newest
	maxSuspected = 256    // executions of what was denied, the newest: until the end
	maxListed    = 100    // findings of one type
	maxWalk      = 4_096  // steps through prior traces in search of a circle

	// MaxNumbers is how many numbered traces of other sessions one part is held
	// against.
	MaxNumbers = 50_000

	maxMissing    = 100      // ranges that an Answers lists
	maxConditions = 64       // of one approval, as package aap
	maxCarry      = 12 << 10 // bytes of ids and texts of each kind that go to the next part
	maxCarryItems = 64       // of each kind
)
