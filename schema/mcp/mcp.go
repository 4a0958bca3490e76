// Package mcp makes AP-Traces of MCP tool invocations (AAP section 3.3): what a
// host knows of one tools/call request and its answer becomes one trace.
//
//	request  params.name       action.name, and the end of execution.tool_name
//	         params.arguments  action.parameters, where conditions look, and execution.inputs
//	server   its name          action.target.identifier, and the start of execution.tool_name
//	answer   result            execution.outputs
//	         result.isError    execution.error: the texts of result.content
//	         error.message     execution.error
//
// execution is context.metadata.execution, which makes the trace a tool_call row
// of its session's bundle. A Session pairs the messages of a transcript, and knows
// which tools the server offered. It owns no transport and reads no clock.
//
// Invariant: what Trace returns is admitted by schema.Admit.
package mcp

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Invocation is one tools/call request with its answer, and the decision that led
// to it. AgentID, CardID, TraceID, Time and Tool are required.
type Invocation struct {
	TraceID string
	AgentID string
	CardID  string
	Time    time.Time

	Server    string         // name of the MCP server; empty: not known
	Tool      string         // params.name
	Arguments jsontext.Value // params.arguments, a JSON object; nil: none
	Result    jsontext.Value // result, a JSON object; nil: none
	Failure   string         // message of the JSON-RPC error that came instead of a result
	CostCents int64

	Category     schema.Category      // empty: bounded
	Alternatives []schema.Alternative // empty: this call alone was considered
	Selected     string               // an OptionID of Alternatives
	Reasoning    string               // empty: the trace says that none was recorded
	Values       []string             // values applied
	Confidence   *float64             // 0..1; nil: not known

	SessionID      string
	PriorTraceIDs  []string
	SequenceNumber *uint64 // counts the agent's traces; nil: not counted
}

// What a trace says where the invocation does not.
const (
	onlyOption     = "call"
	noReasoning    = "no reasoning was recorded"
	unnamedFailure = "the tool reported an error without a text"
	targetType     = "mcp_server"
	namespace      = "mcp" // of a tool whose server is not known
)

// maxFailure is how many bytes of a tool's error texts execution.error repeats.
const maxFailure = 4 << 10

// toolName is the name of the tool within the namespace of its server.
func (v *Invocation) toolName() string {
	if v.Server == "" {
		return namespace + "." + v.Tool
	}
	return v.Server + "." + v.Tool
}
