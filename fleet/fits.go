package fleet

import "time"

// What follows says where a plant may stand. A place is a step's index.

// first tells whether step n is its agent's first.
func (f *Fleet) first(n int) bool { return n == f.agentOf(n).first }

// anywhere is anywhere but where a novice's card is not issued yet.
func anywhere(f *Fleet, n int) bool {
	return f.agentOf(n).role != novice || !f.first(n)
}

func beforeCard(f *Fleet, n int) bool {
	return f.agentOf(n).role == novice && f.first(n)
}

func atTheEnd(f *Fleet, n int) bool {
	a := f.agentOf(n)
	return a.role == ordinary && a.count > 1 && n == a.first+a.count-1
}

// clearance keeps what depends on the older card's expiry away from that moment.
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

// peer returns the ordinary agent of the same trade that follows a, or nil.
func (f *Fleet) peer(a *agent) *agent {
	own := int(f.steps[a.first].agent)
	for i := 1; i < len(f.agents); i++ {
		p := &f.agents[(own+i)%len(f.agents)]
		if p.trade == a.trade && p.role == ordinary {
			return p
		}
	}
	return nil
}

func capsSpending(f *Fleet, n int) bool { return anywhere(f, n) && f.agentOf(n).trade.capped }

func uncapped(f *Fleet, n int) bool {
	return movesMoney(f, n) && !f.agentOf(n).trade.capped
}

func movesMoney(f *Fleet, n int) bool { return anywhere(f, n) && f.agentOf(n).trade.limit > 0 }

func buysOnApproval(f *Fleet, n int) bool {
	return anywhere(f, n) && f.agentOf(n).trade.purchase() != nil
}

func advises(f *Fleet, n int) bool { return anywhere(f, n) && f.agentOf(n).trade.advisory() }

func mayExecute(f *Fleet, n int) bool { return anywhere(f, n) && !f.agentOf(n).trade.advisory() }
