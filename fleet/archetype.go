package fleet

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/schema"
)

//go:embed trades.json
var tradesJSON []byte

// trades returns every archetype. Agents are assigned to them in turn. The file is a part of the
// program, so an error is a programming error.
var trades = sync.OnceValue(func() (all []*archetype) {
	decoder := json.NewDecoder(bytes.NewReader(tradesJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		panic(fmt.Sprintf("fleet: trades.json: %v", err))
	}
	return all
})

// archetype is a trade: the declarations and actions that all agents of one kind share.
type archetype struct {
	Name         string
	Relationship string
	Core         [2]string // values applied in every ordinary decision
	Extra        string    // declared, applied in some decisions
	Rare         string    // declared, applied in drifted decisions only
	Undeclared   [2]string
	Definitions  []definition // of the non-standard values (AAP section 4.4)
	Conflicts    []string

	Routine   []action // bounded_actions
	Guarded   []action // each is named by a trigger
	Forbidden []string
	Stray     string // an action in neither list

	Limit    int64  // max_autonomous_value in cents; 0: the trade moves no money
	Currency string // of the limit
	Amount   string // the parameter that holds the value of a transaction
	Capped   bool   // a trigger escalates above the limit

	Deny, Log sign // conditions of the deny triggers and the log triggers

	Subjects []string // subjects of decisions
	Grounds  []string // reasons for the selected option
}

// definition defines a value that is not one of AAP's standard identifiers.
type definition struct{ ID, Name, Description string }

// action is an action of a trade.
type action struct {
	Name    string
	Type    schema.ActionType // unless something prevents it
	Target  string            // type of the resource
	Priced  bool              // whether it moves money
	Options [3]string
}

// sign is the condition of a trigger, and the members of context.metadata that make it true.
// Without these members it is false.
type sign struct {
	Condition string
	Metadata  json.RawMessage
	Reason    string
}

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
	guard := make([]string, len(a.Guarded)) // names every guarded action
	for i := range a.Guarded {
		guard[i] = `action_name == "` + a.Guarded[i].Name + `"`
	}
	list := [triggerCount]trigger{
		triggerGuard: {strings.Join(guard, " or "), schema.TriggerEscalate, "The principal decides on these actions"},
		triggerDeny:  {a.Deny.Condition, schema.TriggerDeny, a.Deny.Reason},
		triggerLog:   {a.Log.Condition, schema.TriggerLog, a.Log.Reason},
	}
	if a.Capped {
		list[triggerCap] = trigger{a.Amount + " > " + strconv.FormatInt(a.Limit/100, 10),
			schema.TriggerEscalate, "Above what the agent may spend on its own"}
	}
	return list
}

// advisory reports whether agents of this trade only recommend (AAP section 4.3).
func (a *archetype) advisory() bool { return a.Relationship == schema.RelationshipAdvisory }

// priced returns a routine action that moves money, or nil.
func (a *archetype) priced() *action { return firstPriced(a.Routine) }

// purchase returns a guarded action that moves money, or nil.
func (a *archetype) purchase() *action { return firstPriced(a.Guarded) }

func firstPriced(actions []action) *action {
	for i := range actions {
		if actions[i].Priced {
			return &actions[i]
		}
	}
	return nil
}
