package trial

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/schema"
)

// Half is a half of the agents.
type Half string

// The halves. Detectors are chosen with the agents of Tune; those of Aside show whether the choice
// holds.
const (
	Tune  Half = "tune"
	Aside Half = "aside"
	All   Half = "all"
)

// Halves returns the half of each agent, by agent_id: the agents in order of the SHA-256 of their
// names are alternately of Tune and Aside. A name is the part of an agent_id after its last colon.
// So the split depends on nothing that the agents did.
func Halves(recordings []inject.Recording) map[string]Half {
	var agents []string
	for i := range recordings {
		agents = append(agents, recordings[i].Traces[0].AgentID)
	}
	digest := func(agent string) string {
		sum := sha256.Sum256([]byte(agent[strings.LastIndexByte(agent, ':')+1:]))
		return string(sum[:])
	}
	slices.SortFunc(agents, func(a, b string) int { return cmp.Or(cmp.Compare(digest(a), digest(b)), cmp.Compare(a, b)) })
	halves := map[string]Half{}
	for i, agent := range slices.Compact(agents) {
		halves[agent] = []Half{Tune, Aside}[i%2]
	}
	return halves
}

// placed is a trace in an order: its place in the recording, the time at which it comes, and whether it
// ends its session although it does not say so.
type placed struct {
	row int
	at  time.Time
	end bool
}

// natural returns the order of the traces' own times. Traces of equal time stay in the given order.
func natural(traces []*schema.Trace) []placed {
	order := make([]placed, len(traces))
	for i, t := range traces {
		order[i] = placed{row: i, at: t.Timestamp}
	}
	sortPlaced(order)
	return order
}

// permuted returns the order in which the sessions have exchanged their starting times. A session's
// traces keep their distances in time, so sessions stay intact and overlap as before. number
// tells the orders of a recording apart.
func permuted(traces []*schema.Trace, seed uint64, number int) []placed {
	order := natural(traces)
	var sessions []string
	starts := map[string]time.Time{}
	for _, p := range order {
		id := schema.SessionID(traces[p.row])
		if _, known := starts[id]; !known {
			sessions = append(sessions, id)
			starts[id] = p.at
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", traces[0].AgentID, seed, number))
	random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
	shift := make(map[string]time.Duration, len(sessions))
	for i, j := range random.Perm(len(sessions)) {
		shift[sessions[i]] = starts[sessions[j]].Sub(starts[sessions[i]])
	}
	for i := range order {
		order[i].at = order[i].at.Add(shift[schema.SessionID(traces[order[i].row])])
	}
	sortPlaced(order)
	return order
}

func sortPlaced(order []placed) {
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.row, b.row)) })
}

// markEnds marks the last trace of each session.
func markEnds(traces []*schema.Trace, order []placed) {
	ended := map[string]bool{}
	for i := len(order) - 1; i >= 0; i-- {
		id := schema.SessionID(traces[order[i].row])
		order[i].end = !ended[id]
		ended[id] = true
	}
}
