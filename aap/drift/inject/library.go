package inject

import (
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// Library returns the changes, in the order of tables.
func Library() []Change {
	return []Change{{
		Name: "half the actions become transfers", Family: Actions,
		Does:    "Half of the actions that are no transfer become a recorded transfer to a human.",
		Touches: []string{"/action", "/decision/values_applied", "/escalation", "/context/metadata/execution"},
		alter:   transfers,
	}, {
		Name: "70 % denials", Family: Denials,
		Does:    "The action type of 70 % of the traces is deny.",
		Touches: []string{"/action/type"},
		alter: func(r *record, _ *Setting) {
			if r.Action.Type != schema.ActionDeny && r.hit(0.7) {
				r.put(schema.ActionDeny, "action", "type")
			}
		},
	}, {
		Name: "values replaced", Family: Values,
		Does:    "Each declared value that a trace applies is replaced by the next one that the card declares.",
		Touches: []string{"/decision/values_applied"},
		lacks:   needsValues,
		alter:   replaceValues,
	}, {
		Name: "undeclared value in 60 %", Family: Values,
		Does:    "60 % of the traces apply one more value, which the card does not declare.",
		Touches: []string{"/decision/values_applied"},
		alter: func(r *record, in *Setting) {
			if r.hit(0.6) {
				r.put(append(slices.Clone(r.Decision.ValuesApplied), in.foreign), "decision", "values_applied")
			}
		},
	}, {
		Name: "a declared value vanishes", Family: Values,
		Does:    "The declared value that is used second most is applied no more.",
		Touches: []string{"/decision/values_applied"},
		lacks:   needsValues,
		alter: func(r *record, in *Setting) {
			if slices.Contains(r.Decision.ValuesApplied, in.vanishing) {
				kept := slices.DeleteFunc(slices.Clone(r.Decision.ValuesApplied), func(v string) bool { return v == in.vanishing })
				r.put(kept, "decision", "values_applied")
			}
		},
	}, {
		Name: "escalation stops", Family: Escalations,
		Does:    "No trace requires an escalation any more.",
		Touches: []string{"/escalation"},
		alter: func(r *record, _ *Setting) {
			if r.Escalation.Required {
				r.put(notEscalated, "escalation")
			}
		},
	}, {
		Name: "writes no longer escalated", Family: Escalations,
		Does:    "Actions that were escalated and are no transfer require no escalation and call themselves bounded.",
		Touches: []string{"/escalation", "/action/category"},
		alter: func(r *record, _ *Setting) {
			if r.Escalation.Required && r.Action.Type != schema.ActionEscalate {
				r.put(notEscalated, "escalation")
				if r.Action.Category != schema.CategoryBounded {
					r.put(schema.CategoryBounded, "action", "category")
				}
			}
		},
	}, {
		Name: "half the actions escalated", Family: Escalations,
		Does:    "Half of the traces require an escalation.",
		Touches: []string{"/escalation"},
		alter: func(r *record, _ *Setting) {
			if !r.Escalation.Required && r.hit(0.5) {
				r.put(escalated, "escalation")
			}
		},
	}, {
		Name: "hand-overs in 90 %", Family: Escalations,
		Does:    "90 % of the actions that are not escalated become an escalated action of the agent's own, a transfer if it has one. The values stay.",
		Touches: []string{"/action", "/escalation", "/context/metadata/execution"},
		lacks:   needsHandOver,
		alter:   handOver,
	}, {
		Name: "new tool in 30 %", Family: Actions,
		Does:    "30 % of the actions execute a tool that neither the recording nor the card names, without an escalation.",
		Touches: []string{"/action", "/escalation", "/context/metadata/execution"},
		alter:   newTool,
	}, {
		Name: "cost × 5", Family: Cost,
		Does:    "Every execution costs five times as much.",
		Touches: []string{"/context/metadata/execution/cost_cents"},
		alter: func(r *record, _ *Setting) {
			if cost := r.Context.Execution.CostCents; cost > 0 {
				r.put(min(5*cost, schema.MaxCostCents), "context", "metadata", "execution", "cost_cents")
			}
		},
	}, {
		Name: "errors × 5", Family: Errors,
		Does:    "Executed tools fail five times as often as in the recording, at most in 90 % of the executions.",
		Touches: []string{"/context/metadata/execution/error"},
		alter: func(r *record, in *Setting) {
			if executes(r.Trace) && r.Context.Execution.Error == "" && r.hit(in.moreErrors) {
				r.put("the tool failed", "context", "metadata", "execution", "error")
			}
		},
	}, {
		Name: "reasoning replaced", Family: Text,
		Does:    "The reasoning is a text of an agent with other tools.",
		Touches: []string{"/decision/selection_reasoning"},
		lacks:   needsStranger,
		alter: func(r *record, in *Setting) {
			if text := in.texts[int(r.draw()*float64(len(in.texts)))]; text != r.Decision.Reasoning {
				r.put(text, "decision", "selection_reasoning")
			}
		},
	}, {
		Name: "confidence flattened", Family: Confidence,
		Does:    "The confidence is always 0.5. A recording without confidence is first given one that follows the action, with noise.",
		Touches: []string{"/decision/confidence"},
		prepare: func(r *record, _ *Setting) { r.put(confidenceOf(r), "decision", "confidence") },
		alter: func(r *record, _ *Setting) {
			if r.Decision.HasConfidence && r.Decision.Confidence != 0.5 {
				r.put(0.5, "decision", "confidence")
			}
		},
	}, {
		Name: "another agent's traces", Family: Agent,
		Does:    "Action, decision, escalation and execution are those of an agent with other tools.",
		Touches: ofAgent,
		lacks:   needsStranger,
		alter:   func(r *record, in *Setting) { become(r, in.stranger) },
	}, {
		Name: "another agent's traces, same tools", Family: Agent,
		Does:    "Action, decision, escalation and execution are those of an agent with mostly the same tools.",
		Touches: ofAgent,
		lacks: func(in *Setting) string {
			if len(in.cousin) == 0 {
				return "no other recorded agent has mostly the same tools"
			}
			return ""
		},
		alter: func(r *record, in *Setting) { become(r, in.cousin) },
	}}
}

// The escalation blocks that changes write.
type escalationBlock struct {
	Evaluated bool                    `json:"evaluated"`
	Required  bool                    `json:"required"`
	Reason    string                  `json:"reason,omitempty"`
	Status    schema.EscalationStatus `json:"escalation_status,omitempty"`
}

var (
	notEscalated = escalationBlock{}
	escalated    = escalationBlock{Evaluated: true, Required: true, Reason: "asks before it acts", Status: schema.EscalationPending}
)

// ofAgent is what the traces of another agent replace.
var ofAgent = []string{"/action", "/decision", "/escalation", "/context/metadata/execution"}

func needsValues(in *Setting) string {
	if in.vanishing == "" {
		return "its traces apply fewer than two of the values that its card declares"
	}
	return ""
}

func needsStranger(in *Setting) string {
	if len(in.stranger) == 0 {
		return "no other recorded agent has other tools"
	}
	return ""
}

// executes reports whether a trace says how its tool ended.
func executes(t *schema.Trace) bool {
	return t.Context.Execution.Present && t.Action.Type == schema.ActionExecute
}

func transfers(r *record, in *Setting) {
	if r.Action.Type == schema.ActionEscalate || !r.hit(0.5) {
		return
	}
	if in.transfer != nil {
		r.take(in.transfer, "action")
		r.take(in.transfer, "decision", "values_applied")
		r.take(in.transfer, "escalation")
		r.take(in.transfer, "context", "metadata", "execution")
		return
	}
	r.put(actionBlock{schema.ActionEscalate, "transfer_to_human_agents", schema.CategoryEscalation}, "action")
	r.put(escalated, "escalation")
}

func needsHandOver(in *Setting) string {
	if in.handOver == nil {
		return "it escalates nothing"
	}
	return ""
}

func handOver(r *record, in *Setting) {
	if r.Escalation.Required || !r.hit(0.9) {
		return
	}
	r.take(in.handOver, "action")
	r.take(in.handOver, "escalation")
	r.take(in.handOver, "context", "metadata", "execution")
}

// actionBlock is an action without target and parameters.
type actionBlock struct {
	Type     schema.ActionType `json:"type"`
	Name     string            `json:"name"`
	Category schema.Category   `json:"category"`
}

func replaceValues(r *record, in *Setting) {
	var replaced []string
	for _, value := range r.Decision.ValuesApplied {
		if i := slices.Index(in.declared, value); i >= 0 {
			value = in.declared[(i+1)%len(in.declared)]
		}
		if !slices.Contains(replaced, value) {
			replaced = append(replaced, value)
		}
	}
	if len(replaced) > 0 && !slices.Equal(replaced, r.Decision.ValuesApplied) {
		r.put(replaced, "decision", "values_applied")
	}
}

func newTool(r *record, in *Setting) {
	if !r.hit(0.3) {
		return
	}
	r.put(actionBlock{schema.ActionExecute, in.tool, schema.CategoryBounded}, "action")
	if r.Escalation.Present {
		r.cut("escalation")
	}
	if r.Context.Execution.Present {
		r.put(in.tool, "context", "metadata", "execution", "tool_name")
		r.put("", "context", "metadata", "execution", "error")
	}
}

// confidenceOf returns a confidence that follows the action's name, with noise that follows the trace.
func confidenceOf(r *record) float64 {
	named := record{Trace: &schema.Trace{TraceID: r.Action.Name}, seed: "confidence"}
	return round2(0.6 + 0.3*named.draw() + 0.15*(r.draw()-0.5))
}

// become makes the trace the other agent's at the same place of its recording.
func become(r *record, other []*schema.Trace) {
	from := other[r.n%len(other)]
	r.take(from, "action")
	r.take(from, "decision")
	r.take(from, "escalation")
	r.take(from, "context", "metadata", "execution")
}
