package message

import (
	"errors"
	"fmt"
)

// Mode is how far an agent's messages are held to the rules (RFC section 5,
// backward compatibility).
type Mode string

// The three modes.
const (
	Off     Mode = "off"     // nothing is checked: the default
	Warn    Mode = "warn"    // what would be rejected is recorded, and goes through
	Enforce Mode = "enforce" // it is rejected
)

// Policy is what one agent takes from whom (RFC section 2, layer 3).
type Policy struct {
	Mode    Mode
	Human   Intents            // what people may ask for; all classes by default
	Agents  Intents            // what other agents may ask for without anybody's approval; read by default
	Systems map[string]Intents // what each registered schedule is for, by its name
	Tools   map[string]Intents // the class of each tool; a tool that is not here is blocked
}

// DefaultPolicy is the RFC's, in mode off: all classes for people, read for
// agents, nothing for schedules that nobody registered.
func DefaultPolicy() Policy { return Policy{Mode: Off, Human: AllIntents, Agents: Read} }

// Validate reports what is wrong with a policy.
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

// Why something is rejected or blocked. The names are part of the record.
const (
	ReasonUnsigned     = "unsigned"      // no MAC: possibly the model's own words (T1, T3)
	ReasonForged       = "forged"        // the MAC is not this message's
	ReasonUnknownKey   = "unknown_key"   // made by a key that this process does not have
	ReasonWrongSession = "wrong_session" // made for another session or agent
	ReasonStale        = "stale"         // outside the replay window
	ReasonReplayed     = "replayed"      // its nonce was seen
	ReasonNotPermitted = "not_permitted" // the receiver's policy does not allow this source so much
	ReasonUnknownTool  = "unknown_tool"  // the tool has no class
	ReasonOutOfScope   = "out_of_scope"  // the message does not permit the tool's class (T4)
	ReasonNoMessage    = "no_message"    // nothing that was verified authorises the call
)

// Decision is what was decided, and why.
type Decision struct {
	Allowed bool
	Reason  string  // empty when allowed
	Message string  // for people
	Scope   Intents // what the message permits once it is accepted
}

func rejected(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Accept decides what a message, whose MAC was verified, permits: the classes it
// declares, if its source may ask for them all. approval widens what an agent may
// ask for; it is nil where no person approved.
func (p *Policy) Accept(m *Message, approval *Approval) Decision {
	permitted := p.Permitted(m.Source, m.Sender, approval)
	if m.Intents == 0 || !permitted.Has(m.Intents) {
		return rejected(ReasonNotPermitted, "%s %q may ask this agent for %s, and asks for %s",
			m.Source, clip(m.Sender), orNothing(permitted), orNothing(m.Intents))
	}
	return Decision{Allowed: true, Scope: m.Intents}
}

// Permitted returns what a sender may ask this agent for; nothing where the source is
// Anonymous.
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

// Permit decides whether a tool may be called on the authority of an accepted
// message with that scope (layer 2). A later message never widens an earlier one:
// each call stands on the one message that it cites, and on the scope that this
// one was accepted with.
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
