package cards

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Rows are the cards that are rows of the database (store.Store).
type Rows interface {
	// CardPosition returns up to which revision of a bucket, created at the given time, every card
	// is a row; 0 if none is known to be one. It also returns how many cards are rows.
	CardPosition(ctx context.Context, bucketCreated time.Time) (revision, cards uint64, err error)
	// RegisteredCards passes the cards of agents to take, in any order.
	RegisteredCards(ctx context.Context, agents []string, take func(agentID, cardID string, retentionDays uint32)) error
}

// Rely makes Watch read only the cards that are not rows yet. The rows then say which cards an
// agent has, when Know first asks for it; the cards themselves come from the bucket. If rows are
// missing, Watch reads every card, as it does without Rely. bucket is the state of the stream
// behind the bucket. Call Rely before Watch.
func (r *Registry) Rely(ctx context.Context, rows Rows, bucket stream.State) error {
	revision, cards, err := rows.CardPosition(ctx, bucket.Created)
	if err != nil {
		return err
	}
	if revision == 0 || revision > bucket.LastSequence || cards+(bucket.LastSequence-revision) < bucket.Subjects {
		return nil
	}
	r.rows, r.after, r.known = rows, revision, map[string]int32{}
	return nil
}

// Know reads the cards of an agent, unless they are in memory. After Rely, RetainUntil, Current,
// Instead, OfAgent and Keys answer only about agents that are known; without it they answer about
// all. The error is that of the rows or the bucket, after which it is safe to try again.
func (r *Registry) Know(ctx context.Context, agentID string) error {
	if r.Knows(agentID) {
		return nil
	}
	return r.KnowAll(ctx, slices.Values([]string{agentID}))
}

// Knows reports whether RetainUntil answers about an agent. The registry forgets agents without cards, some time
// after they became known.
func (r *Registry) Knows(agentID string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.knows(agentID)
}

func (r *Registry) knows(agentID string) bool {
	_, known := r.known[agentID]
	return known || r.rows == nil
}

// KnowAll is Know for several agents, with at most one query. The watch brings every card that is not
// among the rows, so the two together are complete.
func (r *Registry) KnowAll(ctx context.Context, agents iter.Seq[string]) error {
	found, err := r.find(ctx, agents)
	if err != nil || len(found) == 0 {
		return err
	}
	days, cardIDs := make(map[string]int32, len(found)), make([]string, 0, len(found))
	for agent, rows := range found {
		days[agent] = rows.days
		cardIDs = append(cardIDs, rows.cardIDs...)
	}
	if _, err := r.fetchAll(ctx, r.unread(cardIDs), true); err != nil {
		return err
	}
	r.remember(days)
	return nil
}

// Ahead looks up the rows of agents with one query, so that KnowAll needs no query for them. It reads no card. If it fails, Know looks
// the agents up and reports the error. Pass at most store.MaxAgents agents.
func (r *Registry) Ahead(ctx context.Context, agents iter.Seq[string]) {
	found, err := r.find(ctx, agents)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = found
}

// rowsOf is what the rows say about an agent.
type rowsOf struct {
	days    int32 // the longest retention
	cardIDs []string
}

// find returns what the rows say about those of the agents that are not known.
func (r *Registry) find(ctx context.Context, agents iter.Seq[string]) (map[string]*rowsOf, error) {
	found, ask := r.unknown(agents)
	if len(ask) == 0 {
		return found, nil
	}
	err := r.rows.RegisteredCards(ctx, slices.Sorted(maps.Keys(ask)), func(agentID, cardID string, retentionDays uint32) {
		if rows := ask[agentID]; rows != nil { // a row of another agent is no answer
			rows.days = max(rows.days, int32(retentionDays)) // at most MaxRetentionDays
			rows.cardIDs = append(rows.cardIDs, cardID)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look up the cards of %d agents: %w", len(ask), err)
	}
	maps.Copy(found, ask)
	return found, nil
}

// Relies reports whether the rows say which cards an agent has. Otherwise Watch reads every card.
func (r *Registry) Relies() bool { return r.rows != nil }

// KnowRetention is KnowAll for a caller that has read the rows of some agents and needs no card: it passes the
// longest retention of each agent's rows, in days, 0 for one without rows. Of these agents only RetainUntil
// answers. A longer retention that an agent had before stays: its rows may have been lost since. It has no effect
// without Rely.
func (r *Registry) KnowRetention(days map[string]uint32) {
	if !r.Relies() {
		return
	}
	longest := make(map[string]int32, len(days))
	for agent, n := range days {
		longest[strings.Clone(agent)] = int32(n) // at most MaxRetentionDays
	}
	r.remember(longest)
}

func (r *Registry) remember(days map[string]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uncommitted > maxAbsent { // forget agents that have no card
		maps.DeleteFunc(r.known, func(agent string, longest int32) bool { return longest == 0 && r.agents[agent] == nil })
		r.uncommitted = 0
	}
	for agent, longest := range days {
		delete(r.ahead, agent)
		if longest == 0 {
			r.uncommitted++
		}
		if newest := r.agents[agent]; newest != nil {
			agent = newest.AgentID // one copy of the name
		}
		r.known[agent] = max(longest, r.known[agent])
	}
}

// unknown returns those of the agents that are not known: what Ahead has found about them, and those about which the rows
// must be asked. It leaves out ids longer than MaxIDBytes: such an agent has no card.
func (r *Registry) unknown(agents iter.Seq[string]) (found, ask map[string]*rowsOf) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for agent := range agents {
		if r.knows(agent) || found[agent] != nil || ask[agent] != nil || len(agent) > schema.MaxIDBytes {
			continue
		}
		if found == nil {
			found, ask = map[string]*rowsOf{}, map[string]*rowsOf{}
		}
		agent = strings.Clone(agent)
		if rows := r.ahead[agent]; rows != nil {
			found[agent] = rows
		} else {
			ask[agent] = new(rowsOf)
		}
	}
	return found, ask
}

// unread returns those of the cards that are not in the index.
func (r *Registry) unread(cardIDs []string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.DeleteFunc(cardIDs, func(id string) bool { return r.byID[id] != nil })
}
