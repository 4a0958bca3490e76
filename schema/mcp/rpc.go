package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// The methods that a session reads.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover" // from version 2026-07-28 on, which has no initialize
	methodList       = "tools/list"
	methodCall       = "tools/call"
	methodCancelled  = "notifications/cancelled"
)

// rpc is a JSON-RPC message: a request, an answer or a notification.
type rpc struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// params are the members of params that a session reads.
type params struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Cursor    string         `json:"cursor"`
	Meta      struct {
		MessageID string `json:"plumbline/message_id"`
	} `json:"_meta"`
}

// answers are the members of results that a session reads. From version 2026-07-28 on, each
// result says which server it is from.
type answers struct {
	ServerInfo implementation `json:"serverInfo"`
	Meta       struct {
		ServerInfo implementation `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
	Tools []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tools"`
	NextCursor string `json:"nextCursor"`
}

type implementation struct {
	Name string `json:"name"`
}

// Bounds of texts of servers and clients that are not the evidence itself.
const (
	maxName        = schema.MaxIDBytes - len("…")
	maxDescription = 256 // of an offered tool: every trace repeats them
	nameless       = "(no name)"
)

// nameOf returns a tool's name as a trace can have it.
func nameOf(name string) string {
	if name == "" {
		return nameless
	}
	return schema.Clip(name, maxName)
}

// lenient reads what a client or server accepts that is less strict than schema: a call that
// both of them understand must be on record.
func lenient(raw []byte, into any) error {
	return json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// params reads the parameters of a message; none is no error.
func (m *rpc) params(into any) error {
	if m.Params == nil {
		return nil
	}
	if err := lenient(m.Params, into); err != nil {
		return fmt.Errorf("read the params of %s: %w", m.Method, err)
	}
	return nil
}

// each calls do for a message, or for each message of a batch. A fault of one does not keep the
// others from being read.
func each(message []byte, do func(*rpc) error) error {
	if jsontext.Value(message).Kind() != '[' {
		return one(message, do)
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(message), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := decoder.ReadToken() // the bracket
	var faults []error
	for err == nil && decoder.PeekKind() != ']' {
		var raw jsontext.Value
		if raw, err = decoder.ReadValue(); err == nil {
			faults = append(faults, one(raw.Clone(), do))
		}
	}
	if err == nil {
		_, err = decoder.ReadToken()
	}
	if err == nil {
		if _, err = decoder.ReadToken(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("the batch is followed by another value")
		}
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("read a batch of JSON-RPC messages: %w", err))
	}
	return errors.Join(faults...)
}

func one(message []byte, do func(*rpc) error) error {
	var m rpc
	if err := lenient(message, &m); err != nil {
		return fmt.Errorf("read a JSON-RPC message: %w", err)
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	m.ID = idOf(m.ID)
	return do(&m)
}

// idOf returns an id in one form: the answer may write the characters of a text in another way
// than the request.
func idOf(raw jsontext.Value) jsontext.Value {
	if raw.Kind() != '"' {
		return raw
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return raw
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return raw
	}
	return quoted
}

// RequestIDs returns the ids of the requests in a message, or batch of messages, of a client, as
// Invocation.RequestID has them; nil if it cannot be read.
func RequestIDs(message []byte) (ids []string) {
	err := each(message, func(m *rpc) error {
		if m.Method != "" && m.ID != nil {
			ids = append(ids, string(m.ID))
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return ids
}

// Initializes reports whether a message of a client begins an MCP session.
func Initializes(message []byte) (begins bool) {
	err := each(message, func(m *rpc) error {
		begins = begins || m.Method == methodInitialize
		return nil
	})
	return begins && err == nil
}

// Request is a request of a client, as a gate between client and server sees it.
type Request struct {
	ID        jsontext.Value
	Call      bool   // a tools/call
	Tool      string // params.name of a call
	MessageID string // params._meta["plumbline/message_id"] of a call: the message that asked for it
}

// Requests returns the requests in a message, or batch of messages, of a client. It is strict:
// the error says why a server could read the message in another way.
func Requests(message []byte) (requests []Request, err error) {
	if err := strictly(message); err != nil {
		return nil, fmt.Errorf("read a JSON-RPC message: %w", err)
	}
	err = each(message, func(m *rpc) error {
		if m.Method == "" || m.ID == nil && m.Method != methodCall {
			return nil
		}
		r := Request{ID: m.ID, Call: m.Method == methodCall}
		if r.Call {
			var p params
			if err := m.params(&p); err != nil {
				return err
			}
			r.Tool, r.MessageID = p.Name, p.Meta.MessageID
		}
		requests = append(requests, r)
		return nil
	})
	return requests, err
}

// known are the names that decide what a message asks for.
var known = []string{"id", "method", "params", "result", "error", "name", "_meta"}

// strictly reports why a message is not one JSON value with unique names in valid UTF-8, whose
// members, and those of params, have known names only as they are written: some servers read
// "Method" as "method".
func strictly(message []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(message))
	batch := 0
	if jsontext.Value(message).Kind() == '[' {
		batch = 1
	}
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		depth := decoder.StackDepth()
		if depth == 0 && len(bytes.TrimSpace(message[decoder.InputOffset():])) > 0 {
			return errors.New("it is followed by another value")
		}
		kind, length := decoder.StackIndex(depth)
		isName := kind == '{' && length%2 == 1 && token.Kind() == '"'
		if !isName || depth != batch+1 && (depth != batch+2 || decoder.StackPointer().Parent().LastToken() != "params") {
			continue
		}
		name := token.String()
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 && known[i] != name {
			return fmt.Errorf("a server could read its member %q as %q", schema.Clip(name, 64), known[i])
		}
	}
}

// ToolError returns the answer to a tools/call that failed with a text for the model.
func ToolError(id jsontext.Value, text string) ([]byte, error) {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type result struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}
	return json.Marshal(struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Result  result         `json:"result"`
	}{"2.0", id, result{[]content{{"text", text}}, true}})
}

// The codes of JSON-RPC errors.
const (
	CodeParse   = -32700 // the message is not JSON
	CodeInvalid = -32600 // the message is not a request that can be answered
)

// Failure returns a JSON-RPC error; id is nil if it is not known.
func Failure(id jsontext.Value, code int, text string) ([]byte, error) {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if id == nil {
		id = jsontext.Value("null")
	}
	return json.Marshal(struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Error   failure        `json:"error"`
	}{"2.0", id, failure{code, text}})
}
