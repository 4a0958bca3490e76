package fleet

import (
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// archetype is a trade: what all agents of one kind declare and do.
type archetype struct {
	name         string
	relationship string
	core         [2]string // values behind every ordinary decision
	extra        string    // declared, behind some decisions
	rare         string    // declared, behind drifted decisions only
	undeclared   [2]string
	definitions  []definition // of the values that are not standard (AAP section 4.4)
	conflicts    []string

	routine   []action // bounded_actions
	guarded   []action // a trigger names each of them
	forbidden []string
	stray     string // an action in neither list

	limit    int64  // max_autonomous_value in cents; 0: moves no money
	currency string // of the limit
	amount   string // the parameter that holds the value of a transaction
	capped   bool   // a trigger escalates above the limit

	deny, log sign // conditions of the triggers that refuse and that only log

	subjects []string // what decisions are about
	grounds  []string // why the selected option won
}

// definition defines a value that is not one of AAP's standard identifiers.
type definition struct{ id, name, description string }

// action is one thing agents of a trade do.
type action struct {
	name    string
	typ     schema.ActionType // when nothing stands in its way
	target  string            // type of the resource
	priced  bool              // it moves money
	options [3]string
}

// sign is the condition of a trigger and the members of context.metadata, as
// JSON text, that make it hold. Without them it does not hold.
type sign struct{ condition, metadata, reason string }

// The triggers of every card, in order. An archetype without a cap has three.
const (
	triggerGuard = iota
	triggerCap
	triggerDeny
	triggerLog
	triggerCount
)

// trigger is one escalation trigger; an empty condition is no trigger.
type trigger struct {
	condition string
	action    schema.TriggerAction
	reason    string
}

// triggers returns the escalation triggers that the archetype's cards declare.
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

// guard is the condition that names every guarded action.
func (a *archetype) guard() string {
	tests := make([]string, len(a.guarded))
	for i := range a.guarded {
		tests[i] = `action_name == "` + a.guarded[i].name + `"`
	}
	return strings.Join(tests, " or ")
}

// advisory tells whether agents of this trade only recommend (AAP section 4.3).
func (a *archetype) advisory() bool { return a.relationship == schema.RelationshipAdvisory }

// priced returns a routine action that moves money, or nil.
func (a *archetype) priced() *action { return firstPriced(a.routine) }

// purchase returns a guarded action that is carried out for money, or nil.
func (a *archetype) purchase() *action { return firstPriced(a.guarded) }

func firstPriced(actions []action) *action {
	for i := range actions {
		if actions[i].priced {
			return &actions[i]
		}
	}
	return nil
}
