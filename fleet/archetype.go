package fleet

import (
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// archetype is a trade: the declarations and actions that all agents of one kind share.
type archetype struct {
	name         string
	relationship string
	core         [2]string // values applied in every ordinary decision
	extra        string    // declared, applied in some decisions
	rare         string    // declared, applied in drifted decisions only
	undeclared   [2]string
	definitions  []definition // of the non-standard values (AAP section 4.4)
	conflicts    []string

	routine   []action // bounded_actions
	guarded   []action // each is named by a trigger
	forbidden []string
	stray     string // an action in neither list

	limit    int64  // max_autonomous_value in cents; 0: the trade moves no money
	currency string // of the limit
	amount   string // the parameter that holds the value of a transaction
	capped   bool   // a trigger escalates above the limit

	deny, log sign // conditions of the deny triggers and the log triggers

	subjects []string // subjects of decisions
	grounds  []string // reasons for the selected option
}

// definition defines a value that is not one of AAP's standard identifiers.
type definition struct{ id, name, description string }

// action is an action of a trade.
type action struct {
	name    string
	typ     schema.ActionType // unless something prevents it
	target  string            // type of the resource
	priced  bool              // whether it moves money
	options [3]string
}

// sign is the condition of a trigger, and the members of context.metadata, as JSON text, that
// make it true. Without these members it is false.
type sign struct{ condition, metadata, reason string }

// The triggers of every card, in order. A card of an archetype without a cap has three.
const (
	triggerGuard = iota
	triggerCap
	triggerDeny
	triggerLog
	triggerCount
)

// trigger is one escalation trigger; an empty condition means no trigger.
type trigger struct {
	condition string
	action    schema.TriggerAction
	reason    string
}

// triggers returns the escalation triggers of the archetype's cards.
func (a *archetype) triggers() [triggerCount]trigger {
	list := [triggerCount]trigger{
		triggerGuard: {a.guard(), schema.TriggerEscalate, "The principal decides on these actions"},
		triggerDeny:  {a.deny.condition, schema.TriggerDeny, a.deny.reason},
		triggerLog:   {a.log.condition, schema.TriggerLog, a.log.reason},
	}
	if a.capped {
		list[triggerCap] = trigger{a.amount + " > " + strconv.FormatInt(a.limit/100, 10),
			schema.TriggerEscalate, "Above what the agent may spend on its own"}
	}
	return list
}

// guard returns the condition that names every guarded action.
func (a *archetype) guard() string {
	tests := make([]string, len(a.guarded))
	for i := range a.guarded {
		tests[i] = `action_name == "` + a.guarded[i].name + `"`
	}
	return strings.Join(tests, " or ")
}

// advisory reports whether agents of this trade only recommend (AAP section 4.3).
func (a *archetype) advisory() bool { return a.relationship == schema.RelationshipAdvisory }

// priced returns a routine action that moves money, or nil.
func (a *archetype) priced() *action { return firstPriced(a.routine) }

// purchase returns a guarded action that moves money, or nil.
func (a *archetype) purchase() *action { return firstPriced(a.guarded) }

func firstPriced(actions []action) *action {
	for i := range actions {
		if actions[i].priced {
			return &actions[i]
		}
	}
	return nil
}
