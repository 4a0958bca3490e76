package fleet

import "time"

// The functions below decide where a plant fits. A place is the index of a step.

func anywhere(*Fleet, int) bool { return true }

// byNovice fits a novice's first trace if the shift moves it before the issue of its card by
// more than the clock tolerance.
func byNovice(f *Fleet, n int) bool {
	a := f.agentOf(n)
	shifted := f.eventTime(&f.steps[n]).Add(early)
	return a.role == novice && n == a.first && shifted.Before(a.card.issued.Add(-tolerance-clearance))
}

func atTheEnd(f *Fleet, n int) bool {
	a := f.agentOf(n)
	return a.role == ordinary && a.count > 1 && n == a.first+a.count-1
}

// clearance is the least distance from a card's issue or expiry for plants that depend on it.
const clearance = time.Minute

func afterExpiry(f *Fleet, n int) bool {
	a := f.agentOf(n)
	return a.role == renewed && f.eventTime(&f.steps[n]).After(a.older.expires.Add(clearance))
}

func beforeExpiry(f *Fleet, n int) bool {
	a := f.agentOf(n)
	return a.role == renewed && f.eventTime(&f.steps[n]).Before(a.older.expires.Add(-clearance))
}

func byReplaced(f *Fleet, n int) bool { return f.agentOf(n).role == replaced }

func hasPeer(f *Fleet, n int) bool {
	a := f.agentOf(n)
	return a.role == ordinary && f.peer(a) != nil
}

// peer returns an agent of a's trade with an older card, or nil. The older card allows the same
// as a's own, and it is not the newest card of any agent.
func (f *Fleet) peer(a *agent) *agent {
	for i := range f.agents {
		if p := &f.agents[i]; p.trade == a.trade && p.role == replaced {
			return p
		}
	}
	return nil
}

func capsSpending(f *Fleet, n int) bool { return f.agentOf(n).trade.Capped }

func uncapped(f *Fleet, n int) bool {
	return movesMoney(f, n) && !f.agentOf(n).trade.Capped
}

func movesMoney(f *Fleet, n int) bool { return f.agentOf(n).trade.Limit > 0 }

func buysOnApproval(f *Fleet, n int) bool {
	return f.agentOf(n).trade.purchase() != nil
}

func advises(f *Fleet, n int) bool { return f.agentOf(n).trade.advisory() }

func mayExecute(f *Fleet, n int) bool { return !f.agentOf(n).trade.advisory() }

// afterRevocation fits the last trace of an agent whose older card is revoked when publishing
// begins, if the shift moves the trace far enough after that moment.
func afterRevocation(f *Fleet, n int) bool {
	a := f.agentOf(n)
	shifted := f.eventTime(&f.steps[n]).Add(soon)
	return a.role == withdrawn && n == a.first+a.count-1 && shifted.After(f.cfg.Start.Add(soon/2))
}

func signs(f *Fleet, n int) bool { return f.agentOf(n).key != nil }

// lateInSession fits a trace that can have a lower turn than the previous one.
func lateInSession(f *Fleet, n int) bool { return f.steps[n].turn > 2 }

func secondAndMayExecute(f *Fleet, n int) bool { return f.steps[n].turn > 1 && mayExecute(f, n) }
