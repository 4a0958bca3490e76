package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

type cardNewCommand struct {
	File          string            `arg:"" optional:"" default:"card.json" help:"File to write (${default}); - is standard output. An existing file is not overwritten."`
	Agent         string            `placeholder:"ID" help:"agent_id: a DID, URL or UUID."`
	CardID        string            `name:"card-id" placeholder:"ID" help:"card_id. Default: ac- and a new UUID."`
	Principal     string            `placeholder:"ID" help:"Whom the agent serves: a DID, an email address or the id of an organisation."`
	PrincipalType string            `enum:"human,organization,agent,unspecified" default:"organization" help:"Type of the principal (${enum})."`
	Relationship  string            `enum:"delegated_authority,advisory,autonomous" default:"delegated_authority" help:"How the agent serves the principal (${enum})."`
	Value         []string          `placeholder:"VALUE" help:"Value that the agent applies, such as transparency; repeat it for each."`
	Define        map[string]string `mapsep:"none" placeholder:"VALUE=TEXT" help:"Meaning of a value that AAP does not define; repeat it for each."`
	Bounded       []string          `placeholder:"ACTION" help:"Action that the agent may take by itself; repeat it for each."`
	Forbidden     []string          `placeholder:"ACTION" help:"Action that the agent must never take; repeat it for each."`
	Escalate      []string          `sep:"none" placeholder:"CONDITION" help:"Condition on which the agent must ask its principal, such as 'amount > 100'; a reason may follow after ' # '. Repeat it for each."`
	Days          int               `default:"365" placeholder:"N" help:"Days until the card expires (${default})."`
	RetentionDays int               `default:"90" placeholder:"N" help:"Days for which traces are kept (${default})."`
}

// Help returns the examples.
func (*cardNewCommand) Help() string {
	return "On a terminal it asks for what the flags do not give.\n\n" + examples(
		"plumbline card new",
		`plumbline card new --agent did:web:buyer.example --principal office.example --value principal_benefit \
      --bounded search,purchase --forbidden share_payment_data --escalate 'amount > 100 # the manager approves'`,
	)
}

// cardDocument is a card in the order in which people read one.
type cardDocument struct {
	Version   string    `json:"aap_version"`
	CardID    string    `json:"card_id"`
	AgentID   string    `json:"agent_id"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Principal struct {
		Type         string `json:"type"`
		Identifier   string `json:"identifier,omitempty"`
		Relationship string `json:"relationship"`
	} `json:"principal"`
	Values struct {
		Declared    []string                   `json:"declared"`
		Definitions map[string]valueDefinition `json:"definitions,omitempty"`
	} `json:"values"`
	Autonomy struct {
		Bounded   []string          `json:"bounded_actions"`
		Forbidden []string          `json:"forbidden_actions,omitempty"`
		Triggers  []triggerDocument `json:"escalation_triggers"`
	} `json:"autonomy_envelope"`
	Audit struct {
		Format    string `json:"trace_format"`
		Retention int    `json:"retention_days"`
		Queryable bool   `json:"queryable"`
	} `json:"audit_commitment"`
}

type valueDefinition struct {
	Description string `json:"description"`
}

type triggerDocument struct {
	Condition string `json:"condition"`
	Action    string `json:"action"`
	Reason    string `json:"reason"`
}

// Run writes a card that registration accepts, and prints what to do with it.
func (c *cardNewCommand) Run(_ context.Context, con *console) error {
	if c.File != "-" {
		if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
			return c.exists(err)
		}
	}
	if missing := c.missing(); len(missing) > 0 {
		if !con.interactive() {
			return usagef("missing flags: %s; on a terminal, plumbline card new asks for them", strings.Join(missing, ", "))
		}
		if err := c.ask(newQuestions(con)); err != nil {
			return err
		}
	}
	if c.CardID == "" {
		c.CardID = "ac-" + uuid.NewString()
	}
	text, err := c.compose(time.Now())
	if err != nil {
		return err
	}
	if c.File == "-" {
		_, err = con.out.Write(text)
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return c.exists(err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", c.File, err)
	}
	out := lineWriter{w: con.out}
	out.printf("wrote %s: card %s of agent %s\n\nNext:\n", printable(c.File), printable(c.CardID), printable(c.Agent))
	out.printf("  plumbline card lint %s                   # shows what could still be better\n", c.File)
	out.printf("  plumbline card put %s                    # registers it; plumbline up must run\n", c.File)
	out.printf("  plumbline trace lint FILE --card %s      # judges traces that name this card_id, offline\n", c.File)
	return out.err
}

// exists returns the error for a file that cannot be made.
func (c *cardNewCommand) exists(err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return usagef("%s exists and is not overwritten: name another file", c.File)
	}
	return fmt.Errorf("write the card: %w", err)
}

// missing returns the flags without which no card can be written.
func (c *cardNewCommand) missing() (flags []string) {
	if c.Agent == "" {
		flags = append(flags, "--agent")
	}
	if c.Principal == "" && c.PrincipalType != "unspecified" {
		flags = append(flags, "--principal")
	}
	if len(c.Value) == 0 {
		flags = append(flags, "--value")
	}
	if len(c.Bounded) == 0 {
		flags = append(flags, "--bounded")
	}
	return flags
}

// flagOf returns the flag that sets the member at a pointer.
func flagOf(pointer string) string {
	for _, member := range []struct{ pointer, flag string }{
		{"/agent_id", "--agent"}, {"/card_id", "--card-id"}, {"/expires_at", "--days"}, {"/principal", "--principal"},
		{"/values/definitions", "--define"}, {"/values/declared", "--value (or give its meaning with --define VALUE=TEXT)"},
		{"/autonomy_envelope/bounded_actions", "--bounded"}, {"/autonomy_envelope/forbidden_actions", "--forbidden"},
		{"/autonomy_envelope/escalation_triggers", "--escalate"}, {"/audit_commitment/retention_days", "--retention-days"},
	} {
		if strings.HasPrefix(pointer, member.pointer) {
			return member.flag
		}
	}
	return pointer
}

// compose returns the text of the card. The error names the flag of each fault.
func (c *cardNewCommand) compose(now time.Time) ([]byte, error) {
	issued := now.UTC().Truncate(time.Second)
	card := cardDocument{Version: "0.1.0", CardID: c.CardID, AgentID: c.Agent, IssuedAt: issued, ExpiresAt: issued.AddDate(0, 0, c.Days)}
	card.Principal.Type, card.Principal.Identifier, card.Principal.Relationship = c.PrincipalType, c.Principal, c.Relationship
	card.Values.Declared = c.Value
	for value, meaning := range c.Define {
		if card.Values.Definitions == nil {
			card.Values.Definitions = map[string]valueDefinition{}
		}
		card.Values.Definitions[value] = valueDefinition{meaning}
		if !slices.Contains(card.Values.Declared, value) {
			return nil, usagef("--define %s: the value is not declared: add --value %s", value, value)
		}
	}
	card.Autonomy.Bounded, card.Autonomy.Forbidden = c.Bounded, c.Forbidden
	card.Autonomy.Triggers = []triggerDocument{}
	var faults []string
	for _, text := range c.Escalate {
		trigger := newTriggerDocument(text)
		if _, err := condition.Parse(trigger.Condition); err != nil { // registration reports it only if the card has no other fault
			faults = append(faults, fmt.Sprintf("--escalate %q: %v", text, err))
		}
		card.Autonomy.Triggers = append(card.Autonomy.Triggers, trigger)
	}
	card.Audit.Format, card.Audit.Retention = "ap-trace-v1", c.RetentionDays
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // conditions hold < and >
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(card); err != nil {
		return nil, fmt.Errorf("write the card: %w", err)
	}
	_, err := aap.Register([]byte(text.String()))
	refusal, refused := errors.AsType[*schema.Refusal](err)
	if !refused {
		return []byte(text.String()), err
	}
	for _, fault := range refusal.Faults {
		if !strings.HasSuffix(fault.Pointer, "/condition") { // reported above
			faults = append(faults, flagOf(fault.Pointer)+": "+fault.Message)
		}
	}
	return nil, usagef("%s", strings.Join(faults, "\n"))
}

// newTriggerDocument reads CONDITION or "CONDITION # REASON".
func newTriggerDocument(text string) triggerDocument {
	expression, reason := strings.TrimSpace(text), ""
	if i := strings.LastIndex(text, " # "); i >= 0 {
		// A # inside a quoted text belongs to the condition: without its end the condition does not parse.
		if _, err := condition.Parse(text[:i]); err == nil {
			expression, reason = strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+3:])
		}
	}
	if reason == "" {
		reason = "the principal decides when " + expression
	}
	return triggerDocument{Condition: expression, Action: "escalate", Reason: reason}
}
