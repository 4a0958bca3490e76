package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// Loops follows the runs of an agent's sessions while they go on: those of the sessions that acted
// last, within the limits below. The zero value follows none yet. It is encoded with Append and
// read with LoadLoops, and continues as if it had never been encoded.
type Loops struct {
	sessions []following // the one that acted last is the last
}

type following struct {
	session uint64
	run     run
	first   string // id of the run's first trace
}

// The limits of the memory of Loops.
const (
	maxFollowed      = 16
	maxFollowedBytes = 1 << 10 // of ids of traces
)

// Add adds the next act of a session, with its trace's id, which Loops keeps. It reports whether
// the act makes a run a loop, and returns the finding. Of each run this happens once, unless its
// session was forgotten meanwhile (see the limits): then the count begins again.
func (l *Loops) Add(a Act, traceID string) (finding schema.SessionFinding, found bool) {
	a.session, a.same, a.asked = short(a.session), short(a.same), short(a.asked)
	at := slices.IndexFunc(l.sessions, func(f following) bool { return f.session == a.session })
	f := following{session: a.session}
	if at >= 0 {
		f = l.sessions[at]
		l.sessions = slices.Delete(l.sessions, at, at+1)
	}
	looped := f.run.looped()
	f.run.add(a)
	if f.run.Count == 1 {
		f.first = traceID
	}
	if found = !looped && f.run.looped(); found {
		finding = loopFinding(f.run.Kind, f.run.Count, a.name, f.first, traceID, traceID)
	}
	if a.last {
		return finding, found
	}
	if f.run.Kind == noLoop {
		f.first = ""
	}
	l.sessions = append(l.sessions, f)
	bytes := 0
	for i := range slices.Backward(l.sessions) {
		if bytes += len(l.sessions[i].first); len(l.sessions)-i > maxFollowed || bytes > maxFollowedBytes {
			l.sessions = slices.Delete(l.sessions, 0, i+1)
			break
		}
	}
	return finding, found
}

// LoopAlertPrefix precedes the id of an alert about a loop in a session that has not been sealed.
const LoopAlertPrefix = "loop."

// LoopAlert returns the alert about a finding of Loops. trace and at are the digest and the event
// time of the trace that made the run a loop.
func LoopAlert(agentID, cardID, sessionID string, trace schema.Digest, at time.Time, finding schema.SessionFinding) schema.LoopAlert {
	a := schema.LoopAlert{AlertType: schema.LoopDetected, AgentID: agentID, CardID: cardID, SessionID: sessionID,
		DetectionTimestamp: at.UTC(), TraceDigest: trace, Finding: finding, EngineVersion: aap.EngineVersion}
	a.AlertID = LoopAlertID(&a)
	return a
}

// LoopAlertID returns the id that an alert must have. It is the same on every replay: the SHA-256
// of its type, agent, card, session, the digest of its trace, and the engine version.
func LoopAlertID(a *schema.LoopAlert) schema.Digest {
	return schema.DigestOf(fmt.Appendf(nil, "%q %q %q %q %q %q", a.AlertType, a.AgentID, a.CardID, a.SessionID, a.TraceDigest, a.EngineVersion))
}
