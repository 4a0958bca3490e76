// Package mcp makes AP-Traces of MCP tool invocations (AAP section 3.3). It turns one
// tools/call request, its answer and the host's knowledge into one trace.
//
//	request  params.name       action.name, and the end of execution.tool_name
//	         params.arguments  action.parameters, where conditions look, and execution.inputs
//	server   its name          action.target.identifier, and the start of execution.tool_name
//	answer   result            execution.outputs
//	         result.isError    execution.error: the texts of result.content
//	         error.message     execution.error
//
// execution is context.metadata.execution, which makes the trace a tool_call row of its
// session's bundle. A Session pairs the messages of a transcript and keeps the list of tools
// that the server offered. The package owns no transport and reads no clock.
//
// Invariant: schema.Admit admits every trace that Trace returns.
package mcp

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Invocation is one tools/call request, its answer, and the decision that led to it. AgentID,
// CardID, TraceID, Time and Tool are required.
type Invocation struct {
	TraceID string
	AgentID string
	CardID  string
	Time    time.Time

	Server    string         // name of the MCP server; empty if unknown
	Tool      string         // params.name
	Arguments jsontext.Value // params.arguments, a JSON object; nil: none
	Result    jsontext.Value // result, a JSON object; nil: none
	Failure   string         // message of the JSON-RPC error that arrived instead of a result
	CostCents int64

	Category     schema.Category      // empty: bounded
	Alternatives []schema.Alternative // if empty, this call was the only option
	Selected     string               // an OptionID of Alternatives
	Reasoning    string               // if empty, the trace says that no reasoning was recorded
	Values       []string             // values applied
	Confidence   *float64             // 0..1; nil if unknown

	SessionID      string
	PriorTraceIDs  []string
	SequenceNumber *uint64 // number of the trace among the agent's traces; nil if not counted
}

// Defaults for members that the invocation leaves empty.
const (
	onlyOption     = "call"
	noReasoning    = "no reasoning was recorded"
	unnamedFailure = "the tool reported an error without a text"
	targetType     = "mcp_server"
	namespace      = "mcp" // of a tool with an unknown server
)

// maxFailure is how many bytes of a tool's error texts execution.error contains.
const maxFailure = 4 << 10

// toolName returns the name of the tool within the namespace of its server.
func (v *Invocation) toolName() string {
	if v.Server == "" {
		return namespace + "." + v.Tool
	}
	return v.Server + "." + v.Tool
}
