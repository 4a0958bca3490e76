// Package mcprecorder runs between an MCP client and an MCP server, and puts each tools/call on
// record: over stdio (Stdio runs the server as a child process), and over streamable HTTP (HTTP
// is a proxy).
//
// It owns the transports and the pairing of what passes with conversations. It does not own the
// traces (schema/mcp makes them), their delivery (client.Recorder) or decisions about calls
// (client.Runtime asks ingest for them).
//
// Invariants: every byte is passed on unchanged, in both directions. Only with Enforce, a call
// that is denied, or that nobody could decide, is not passed on, and the client gets a tool error
// instead. A fault of the recording never stops the traffic. A call that was passed on is on
// record, also if its answer is missing, strange or too large.
package mcprecorder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/mcp"
)

// Config says what is recorded, and where to. AgentID, CardID, Recorder and Report are required.
type Config struct {
	AgentID  string
	CardID   string
	Recorder *client.Recorder

	// SessionID is the session of all traces, which then have no numbers, because other
	// processes may record in it. If it is empty, each MCP session is a session of its own.
	SessionID string
	Server    string // name of the MCP server; empty: the name that it reports

	// Enforce, if set, is asked before a call is passed on. Each result is signed when it is
	// recorded.
	Enforce   *client.HTTP
	MessageID string // the message that calls rely on if their _meta has no plumbline/message_id

	AskTimeout time.Duration // how long a decision may take; 0: 10 s

	Offered func(tools []string) // called with each complete list of tools; may be nil
	Report  func(string)         // a fault of the recording, for people; called from any goroutine
}

// maxMessage bounds the messages that are read. A longer one is passed on and not recorded; with
// Enforce it is refused.
const maxMessage = 64 << 20

// askTimeout and signTimeout bound how long a decision, and the signing of a result, may take.
const (
	askTimeout  = 10 * time.Second
	signTimeout = 10 * time.Second
)

// conversation is one MCP session on record.
type conversation struct {
	config  *Config
	id      string          // of the session of its traces
	runtime *client.Runtime // nil without Enforce

	mu      sync.Mutex
	session mcp.Session
	permits map[request]*client.Permission // of calls without an answer
	calls   bool                           // whether there were any
	unread  bool                           // whether a message of the server was too long to be read

	noise sync.Once // reports the server's first line that is no message
}

// request identifies a request: by its id, within one HTTP exchange if the server keeps no sessions.
type request struct{ scope, id string }

func (c *Config) conversation() *conversation {
	v := &conversation{config: c, id: cmp.Or(c.SessionID, uuid.NewString()), permits: map[request]*client.Permission{}}
	v.session = mcp.Session{AgentID: c.AgentID, CardID: c.CardID, SessionID: v.id, Server: c.Server, Unnumbered: c.SessionID != ""}
	if c.Enforce != nil {
		v.runtime = &client.Runtime{HTTP: c.Enforce, AgentID: c.AgentID, SessionID: v.id}
	}
	return v
}

// fromClient reads a message of the client before it is passed on.
func (c *conversation) fromClient(scope string, message []byte) {
	if len(bytes.TrimSpace(message)) == 0 {
		return
	}
	c.mu.Lock()
	done, err := c.session.FromClient(time.Now(), scope, message)
	c.mu.Unlock()
	if err != nil {
		c.config.Report(fmt.Sprintf("a message of the client is passed on, and cannot be recorded: %v", err))
	}
	c.record(done...)
}

// fromServer reads a message of the server before it is passed on.
func (c *conversation) fromServer(scope string, message []byte) {
	if len(bytes.TrimSpace(message)) == 0 {
		return
	}
	c.mu.Lock()
	_, before := c.session.Offered()
	done, err := c.session.FromServer(time.Now(), scope, message)
	tools, complete := c.session.Offered()
	c.mu.Unlock()
	switch {
	case err == nil:
	case jsontext.Value(message).IsValid():
		c.config.Report(fmt.Sprintf("a message of the server is passed on, and cannot be recorded: %v", err))
	default:
		c.noise.Do(func() {
			c.config.Report(fmt.Sprintf("the server writes lines that are no messages, such as %q: they are passed on; its log belongs on standard error", schema.Clip(string(bytes.TrimSpace(message)), 64)))
		})
	}
	if complete && !before && c.config.Offered != nil {
		c.config.Offered(tools)
	}
	c.record(done...)
}

// abandon records requests of a scope that will not be answered, all of them or those with the ids.
func (c *conversation) abandon(scope, why string, ids ...string) {
	c.mu.Lock()
	if c.unread {
		why += fmt.Sprintf("; but a message of more than %d bytes was passed on unread, which may be the answer", maxMessage)
	}
	done := c.session.Abandon(time.Now(), scope, why, ids...)
	c.mu.Unlock()
	c.record(done...)
}

// tooLong notes that a message of the server was passed on and not read.
func (c *conversation) tooLong() {
	c.mu.Lock()
	c.unread = true
	c.mu.Unlock()
}

// end ends the session of the traces, if there are any.
func (c *conversation) end() {
	c.mu.Lock()
	calls := c.calls
	c.mu.Unlock()
	if calls {
		c.config.Recorder.EndSession(c.id)
	}
}

// record makes a trace of each call that is over.
func (c *conversation) record(done ...*mcp.Invocation) {
	for _, v := range done {
		c.mu.Lock()
		key := request{v.Scope, v.RequestID}
		permission := c.permits[key]
		delete(c.permits, key)
		c.calls = true
		c.mu.Unlock()
		if permission != nil && v.Blocked == "" {
			c.cite(v, permission)
		}
		raw, err := v.Fit()
		if err == nil {
			err = c.config.Recorder.RecordTrace(raw)
		}
		if err != nil {
			c.config.Report(fmt.Sprintf("a call of %q is not on record: %v", v.Tool, err))
		}
	}
}

// cite has the result of a permitted call signed and cites both in the trace.
func (c *conversation) cite(v *mcp.Invocation, permission *client.Permission) {
	if permission.MessageID == "" {
		return // the agent's policy demands no message
	}
	var results []*client.SignedResult
	if v.Result != nil {
		ctx, cancel := context.WithTimeout(context.Background(), signTimeout)
		signed, err := c.runtime.Result(ctx, v.ToolName(), json.RawMessage(v.Result))
		cancel()
		if err != nil {
			c.config.Report(fmt.Sprintf("the result of a call of %q could not be signed: %v", v.Tool, err))
		} else {
			results = append(results, signed)
		}
	}
	v.MessageAuth = citation(client.Cite(permission, results...))
}

func citation(of client.Citation) []byte {
	raw, err := json.Marshal(of)
	if err != nil {
		panic(err) // texts and numbers can always be written
	}
	return raw
}

// decide asks whether the calls of a message may be made. answer is nil if the message may be
// passed on; otherwise it is for the client, empty if the message has nothing to be answered.
func (c *conversation) decide(ctx context.Context, scope string, message []byte) (answer []byte) {
	requests, err := mcp.Requests(message)
	if err != nil {
		return failure(nil, mcp.CodeParse, fmt.Sprintf("the message was not passed on: %v", err))
	}
	denied := map[int]string{} // texts, by the index of the request
	for i := range requests {
		if q := &requests[i]; q.Call {
			if err := c.ask(ctx, scope, q); err != nil {
				denied[i] = err.Error()
			}
		}
	}
	if len(denied) == 0 {
		return nil
	}
	answers := [][]byte{}
	for i := range requests {
		q := &requests[i]
		why := cmp.Or(denied[i], "another call of the same batch was denied")
		if q.Call {
			c.block(scope, q, why)
		}
		switch {
		case q.ID == nil:
		case q.Call:
			answers = append(answers, toolError(q.ID, "This tool was not called: "+why))
		default:
			answers = append(answers, failure(q.ID, mcp.CodeInvalid, "not passed on: "+why))
		}
	}
	joined := bytes.Join(answers, []byte(","))
	if bytes.TrimSpace(message)[0] == '[' && len(answers) > 0 {
		joined = append(append([]byte{'['}, joined...), ']')
	}
	return append([]byte{}, joined...)
}

// ask returns nil if a call may be made.
func (c *conversation) ask(ctx context.Context, scope string, q *mcp.Request) error {
	c.mu.Lock()
	name := (&mcp.Invocation{Server: c.session.Server, Tool: q.Tool}).ToolName()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.config.AskTimeout, askTimeout)) // the client waits
	defer cancel()
	permission, err := c.runtime.Call(ctx, cmp.Or(q.MessageID, c.config.MessageID), name)
	if err != nil {
		if blocked, ok := errors.AsType[*client.Blocked](err); ok {
			return blocked
		}
		return fmt.Errorf("ingest could not be asked: %w", err)
	}
	c.mu.Lock()
	c.permits[request{scope, string(q.ID)}] = permission
	c.mu.Unlock()
	return nil
}

// block records a call that was not passed on.
func (c *conversation) block(scope string, q *mcp.Request, why string) {
	c.mu.Lock()
	v := c.session.Block(time.Now(), scope, string(q.ID), why)
	c.mu.Unlock()
	if v != nil {
		c.record(v)
	}
}

func toolError(id []byte, text string) []byte {
	raw, err := mcp.ToolError(id, text)
	if err != nil {
		return failure(nil, mcp.CodeInvalid, text) // the id was read from JSON: this cannot be
	}
	return raw
}

func failure(id []byte, code int, text string) []byte {
	raw, err := mcp.Failure(id, code, text)
	if err != nil {
		panic(err) // a number and a text
	}
	return raw
}
