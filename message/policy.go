package message

import (
	"errors"
	"fmt"
)

// Mode defines how strictly the rules apply to an agent's messages (RFC section 5, backward
// compatibility).
type Mode string

// The three modes.
const (
	Off     Mode = "off"     // nothing is checked: the default
	Warn    Mode = "warn"    // what enforce would reject is recorded, and allowed
	Enforce Mode = "enforce" // what breaks the rules is rejected
)

// Policy defines which sources may ask one agent for which classes (RFC section 2, layer 3).
type Policy struct {
	Mode    Mode
	Human   Intents            // classes that people may ask for; all by default
	Agents  Intents            // classes that other agents may ask for without a person's approval; read by default
	Systems map[string]Intents // classes of each registered schedule, by its name
	Tools   map[string]Intents // class of each tool; a tool without an entry is blocked
}

// DefaultPolicy returns the RFC's policy in mode off: all classes for people, read for agents,
// nothing for unregistered schedules.
func DefaultPolicy() Policy { return Policy{Mode: Off, Human: AllIntents, Agents: Read} }

// Validate reports the faults of a policy.
func (p *Policy) Validate() error {
	var faults []error
	switch p.Mode {
	case Off, Warn, Enforce:
	default:
		faults = append(faults, fmt.Errorf("mode: %q is none of off, warn, enforce", clip(string(p.Mode))))
	}
	for tool, class := range p.Tools {
		if err := CheckToolName(tool); err != nil {
			faults = append(faults, fmt.Errorf("tools: %w", err))
		}
		if class == 0 || class&(class-1) != 0 {
			faults = append(faults, fmt.Errorf("tools: %q: want one action class, not %q", clip(tool), class))
		}
	}
	return errors.Join(faults...)
}

// Approval is a person's recorded consent to more than an agent may ask for.
type Approval struct {
	MessageID string // the person's own authenticated message
	Intents   Intents
}

// The reasons for rejecting or blocking. The names are part of the record.
const (
	ReasonUnsigned     = "unsigned"      // no MAC: possibly the model's own words (T1, T3)
	ReasonForged       = "forged"        // the MAC does not fit the message
	ReasonUnknownKey   = "unknown_key"   // the MAC was made with a key that this process does not have
	ReasonWrongSession = "wrong_session" // signed for another session or agent
	ReasonStale        = "stale"         // outside the replay window
	ReasonReplayed     = "replayed"      // its nonce was already used
	ReasonNotPermitted = "not_permitted" // the receiver's policy permits this source less
	ReasonUnknownTool  = "unknown_tool"  // the tool has no class
	ReasonOutOfScope   = "out_of_scope"  // the message does not permit the tool's class (T4)
	ReasonNoMessage    = "no_message"    // no verified message authorises the call
)

// Decision is a decision and its reason.
type Decision struct {
	Allowed bool
	Reason  string  // empty when allowed
	Message string  // explanation for people
	Scope   Intents // classes that the message permits once it is accepted
}

func rejected(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Accept decides what a message with a verified MAC permits: the classes it declares, if its
// source may ask for all of them. approval extends what an agent may ask for; it is nil where
// no person approved.
func (p *Policy) Accept(m *Message, approval *Approval) Decision {
	permitted := p.Permitted(m.Source, m.Sender, approval)
	if m.Intents == 0 || !permitted.Has(m.Intents) {
		return rejected(ReasonNotPermitted, "%s %q may ask this agent for %s, and asks for %s",
			m.Source, clip(m.Sender), orNothing(permitted), orNothing(m.Intents))
	}
	return Decision{Allowed: true, Scope: m.Intents}
}

// Permitted returns the classes that a sender may ask this agent for. It returns none where the
// source is Anonymous.
func (p *Policy) Permitted(source Source, sender string, approval *Approval) Intents {
	switch source {
	case Human:
		return p.Human
	case Agent:
		if approval != nil {
			return p.Agents | approval.Intents&p.Human
		}
		return p.Agents
	case System:
		return p.Systems[sender]
	}
	return 0
}

func orNothing(i Intents) string {
	if i == 0 {
		return "nothing"
	}
	return i.String()
}

// Permit decides whether a tool may be called under an accepted message with that scope (layer
// 2). A later message never extends an earlier one: each call depends only on the message that
// it cites and on the scope with which that message was accepted.
func (p *Policy) Permit(tool string, scope Intents) Decision {
	class, known := p.Tools[tool]
	switch {
	case !known:
		return rejected(ReasonUnknownTool, "tool %q has no action class for this agent: give it one to allow it", clip(tool))
	case !scope.Has(class):
		return rejected(ReasonOutOfScope, "tool %q is of class %s, the message permits %s", clip(tool), class, orNothing(scope))
	}
	return Decision{Allowed: true, Scope: scope}
}
