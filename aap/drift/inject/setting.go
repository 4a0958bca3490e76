package inject

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// Recording is the traces of one agent under one card, in order. Each has its Raw.
type Recording struct {
	Card   *schema.Card
	Traces []*schema.Trace // at least one
}

// Setting is what changes must know of a recording, of its card, and of the other recordings.
type Setting struct {
	seed       uint64
	declared   []string        // by the card, in order of their names
	foreign    string          // a value that the card does not declare
	vanishing  string          // the declared value that is used second most; empty if fewer than two are used
	moreErrors float64         // share of the executions without an error that must fail, so that five times as many do
	transfer   *schema.Trace   // a recorded transfer, of this agent if it has one; nil if there is none
	handOver   *schema.Trace   // this agent's first escalated action, a transfer if it has one; nil if it escalates nothing
	tool       string          // that neither the recording nor the card names
	confident  bool            // some trace has a confidence
	stranger   []*schema.Trace // of the agent with the most different tools; nil if none differs by half
	cousin     []*schema.Trace // of another agent with mostly the same tools; nil if there is none
	texts      []string        // the first texts of the stranger
}

// donorTexts is the number of texts of another agent that replace reasoning.
const donorTexts = 100

// Settings returns the setting of each recording. The seed chooses the traces that are altered where a
// change alters a share.
func Settings(all []Recording, seed uint64) []Setting {
	settings := make([]Setting, len(all))
	for i := range all {
		in := &settings[i]
		in.seed = seed
		in.ofCard(&all[i])
		in.ofTraces(all[i].Traces)
		in.ofOthers(all, i)
	}
	return settings
}

// ofCard finds what depends on the card.
func (in *Setting) ofCard(own *Recording) {
	in.declared = slices.Compact(slices.Sorted(slices.Values(own.Card.Values.Declared)))
	in.foreign = "speed"
	for slices.Contains(in.declared, in.foreign) {
		in.foreign += "_first"
	}
	used := toolsOf(own.Traces)
	in.tool = "export_customer_data"
	for used[in.tool] || bytes.Contains(own.Card.Raw, []byte(in.tool)) {
		in.tool += "_again"
	}
}

// ofTraces finds what depends on the agent's own traces.
func (in *Setting) ofTraces(traces []*schema.Trace) {
	uses, executions, failed := map[string]int{}, 0, 0
	for _, t := range traces {
		for _, value := range t.Decision.ValuesApplied {
			if slices.Contains(in.declared, value) {
				uses[value]++
			}
		}
		if executes(t) {
			executions++
			if t.Context.Execution.Error != "" {
				failed++
			}
		}
		in.confident = in.confident || t.Decision.HasConfidence
	}
	byUse := slices.SortedFunc(maps.Keys(uses), func(a, b string) int { return cmp.Or(uses[b]-uses[a], cmp.Compare(a, b)) })
	if len(byUse) > 1 {
		in.vanishing = byUse[1]
	}
	if failed > 0 && failed < executions { // of the executions without an error, 4·failed must fail
		in.moreErrors = min(0.9, 4*float64(failed)/float64(executions-failed))
	}
	in.transfer = transferOf(traces)
	if in.handOver = in.transfer; in.handOver == nil {
		in.handOver = escalatedOf(traces)
	}
}

// ofOthers finds what comes from other agents. Recordings with the same degree of common tools count
// in the order of their agents' ids.
func (in *Setting) ofOthers(all []Recording, own int) {
	const mostly = 0.5
	most, least := -1.0, mostly
	mine := toolsOf(all[own].Traces)
	byAgent := slices.Clone(all)
	slices.SortStableFunc(byAgent, func(a, b Recording) int { return cmp.Compare(a.Traces[0].AgentID, b.Traces[0].AgentID) })
	for _, other := range byAgent {
		if other.Traces[0].AgentID == all[own].Traces[0].AgentID {
			continue
		}
		common := overlap(mine, toolsOf(other.Traces))
		if common >= mostly && common > most {
			most, in.cousin = common, other.Traces
		}
		if common < least {
			least, in.stranger = common, other.Traces
		}
		if in.transfer == nil {
			in.transfer = transferOf(other.Traces)
		}
	}
	for _, t := range in.stranger[:min(len(in.stranger), donorTexts)] {
		in.texts = append(in.texts, t.Decision.Reasoning)
	}
}

// transferOf returns the first transfer among traces, or nil.
func transferOf(traces []*schema.Trace) *schema.Trace {
	if i := slices.IndexFunc(traces, func(t *schema.Trace) bool {
		return t.Action.Type == schema.ActionEscalate && t.Escalation.Required
	}); i >= 0 {
		return traces[i]
	}
	return nil
}

// escalatedOf returns the first escalated trace, or nil.
func escalatedOf(traces []*schema.Trace) *schema.Trace {
	if i := slices.IndexFunc(traces, func(t *schema.Trace) bool { return t.Escalation.Required }); i >= 0 {
		return traces[i]
	}
	return nil
}

func toolsOf(traces []*schema.Trace) map[string]bool {
	tools := map[string]bool{}
	for _, t := range traces {
		tools[t.Action.Name] = true
	}
	return tools
}

// overlap returns the number of common names divided by the number of all names.
func overlap(a, b map[string]bool) float64 {
	common := 0
	for name := range a {
		if b[name] {
			common++
		}
	}
	return float64(common) / float64(len(a)+len(b)-common)
}
