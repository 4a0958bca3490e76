// Package api serves every route of ingest except POST /v1/traces: Alignment Cards and their
// revocations, requests to seal a session, handshakes, signed messages, AIVS-Micro proofs, marks
// on dead letters, and public cards, keys and schemas.
//
// It owns these routes, the keys that sign handshakes and proofs, and the rules for the signatures
// of new cards. It does not own the listener and the process (pipeline/ingest, which mounts it),
// the checks before a handler (pipeline/request), the registry of cards (pipeline/cards), or the
// protocols of handshakes and messages (pipeline/handshake, pipeline/messages).
//
// Invariants: an answer that confirms a change is sent after the broker has stored the change; it
// is always safe to repeat a request; no key is used before the operator's ledger has it.
package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Config configures the routes.
type Config struct {
	Rules               `embed:""`
	CardSignatures      string        `help:"Which signatures new cards need: off; continuity (once an agent has registered a key, its later cards must be signed with it); required (the same, and every card is signed). An existing signature is always verified."`
	CardIssuerKeysFile  string        `help:"File of public keys that may sign the cards of every agent, one JSON object a line: {key_id, algorithm, public_key}. Use it if an agent has lost its key." type:"path"`
	A2AAgentCards       []string      `name:"a2a-agent-cards" placeholder:"AGENT=FILE" help:"A2A agent cards to serve at /.well-known/agent-card.json, each with its agent's current Alignment Card in its alignment block. They must not be signed."`
	HandshakePeers      []string      `placeholder:"URL" help:"Services that are asked for the card of an agent that begins a handshake and is not registered here: https://host:port."`
	HandshakeKeyFile    string        `help:"Key that signs answers of the value coherence handshake: exactly 32 raw bytes, mode 0600, created if it is missing. All ingests share one." type:"path"`
	MicroKeyFile        string        `help:"Key that signs AIVS-Micro proofs: exactly 32 raw bytes, mode 0600, created if it is missing, and listed in keys.jsonl in the same directory. All ingests share one." type:"path"`
	MessagePoliciesFile string        `help:"File of message policies: what each agent accepts from whom, and the action classes of its tools (docs/MESSAGES.md). Without it no agent's messages are checked. The verifier needs the same file." type:"path"`
	MessageWindow       time.Duration `help:"How long a signed message, or the approval of one, stays fresh."`
	MaxCardIndexBytes   int64         `help:"Memory for the index of all cards, which each service holds. When it is full, ingest refuses new cards."`
}

// Rules decide the result of a handshake, together with the cards.
type Rules struct {
	MinCoherence float64 `help:"Minimum coherence score with which two agents may proceed (AAP section 8.3, MIN_COHERENCE_FOR_PROCEED)."`
	Methodology  string  `help:"How min_coherence was derived, if it is not the published one (AAP section 8.3). Every coherence_result contains this text."`
}

// DefaultRules returns the published thresholds.
func DefaultRules() Rules { return Rules{MinCoherence: aap.DefaultThresholds().MinCoherence} }

// Validate returns every fault.
func (r *Rules) Validate() (faults config.Faults) {
	faults.CheckThreshold("min_coherence", r.MinCoherence, DefaultRules().MinCoherence, r.Methodology)
	return faults
}

// Default returns the configuration of a service on this machine.
func Default() Config {
	return Config{
		Rules:             DefaultRules(),
		CardSignatures:    signaturesContinuity,
		HandshakeKeyFile:  "plumbline-data/keys/handshake.key",
		MicroKeyFile:      "plumbline-data/keys/micro.key",
		MessageWindow:     message.DefaultWindow,
		MaxCardIndexBytes: 1 << 30,
	}
}

// minCardIndex is enough for a few thousand cards.
const minCardIndex = 1 << 20

// Validate returns every fault.
func (c *Config) Validate() (faults config.Faults) {
	modes := []string{signaturesOff, signaturesContinuity, signaturesRequired}
	faults.Check(slices.Contains(modes, c.CardSignatures), "card_signatures", "%q: want %s", c.CardSignatures, strings.Join(modes, ", "))
	_, err := handshake.NewPeers(c.HandshakePeers)
	faults.Check(err == nil, "handshake_peers", "%v", err)
	faults = append(faults, c.Rules.Validate()...)
	faults.Check(c.HandshakeKeyFile != "", "handshake_key_file", "is empty: want the path of the key, which is created if it is missing")
	faults.Check(c.MicroKeyFile != "", "micro_key_file", "is empty: want the path of the key, which is created if it is missing")
	faults.Check(c.MessageWindow > 0, "message_window", "%s: want more than 0", c.MessageWindow)
	faults.Check(c.MaxCardIndexBytes >= minCardIndex, "max_card_index_bytes", "%d: want at least %d", c.MaxCardIndexBytes, minCardIndex)
	return faults
}

// Files holds the contents of the files that the configuration names, except keys.
type Files struct {
	issuers    []schema.Key
	agentCards agentCards
	policies   *messages.Policies
}

// ReadFiles reads the files and returns every fault. anonymous means that requests need no token.
func (c *Config) ReadFiles(anonymous bool, log *slog.Logger) (f Files, faults config.Faults) {
	var err error
	f.issuers, err = readIssuers(c.CardIssuerKeysFile)
	faults.Check(err == nil, "card_issuer_keys_file", "%v", err)
	f.agentCards, err = readAgentCards(c.A2AAgentCards)
	faults.Check(err == nil, "a2a_agent_cards", "%v", err)
	f.policies, err = messages.OpenPolicies(c.MessagePoliciesFile, anonymous, log)
	faults.Check(err == nil, "message_policies_file", "%v", err)
	return f, faults
}

// Broker is what the routes use of the broker directly (stream.Client).
type Broker interface {
	StreamState(ctx context.Context, name string) (stream.State, error)
	RequestEnd(ctx context.Context, partition int, end wire.EndRequest) error
	AppendLedger(ctx context.Context, events ...ledger.Event) error
	MarkDeadLetters(ctx context.Context, marks []wire.Mark) error
}

// Parts are what the routes work with.
type Parts struct {
	Env             *service.Env
	Config          *Config
	Files           Files
	Cards           *cards.Registry
	Broker          *stream.Client
	HandshakeBucket *stream.Bucket
	MessageBucket   *stream.Bucket
	Insecure        error     // why handshake messages may not travel over the HTTP listener; nil: they may
	Random          io.Reader // source of the key of messages
}

// API answers the routes.
type API struct {
	Parts
	broker Broker
	router *request.Router

	messages *messages.Service
	microKey *keystore.Live

	handshakeKey *keystore.Live
	handshakes   *handshake.Service // nil if link reports why they cannot be served
	link         func() error       // whether the broker's connection is secure enough (stream.Client.Secure)
}

// Open opens the keys and services of the routes. The operator's ledger has each key before Open
// returns.
func Open(ctx context.Context, parts Parts) (a *API, err error) {
	a = &API{Parts: parts, broker: parts.Broker}
	if err := a.openHandshakes(ctx); err != nil {
		return nil, err
	}
	a.messages, err = messages.New(messages.Parts{
		Policies: a.Files.policies, Records: messages.NewRecords(a.MessageBucket), Window: a.Config.MessageWindow,
		Now: time.Now, Random: a.Random, Metrics: a.Env.Metrics,
	})
	if err != nil {
		return nil, err
	}
	if a.microKey, err = a.followKey(ctx, a.Config.MicroKeyFile, keyring.Micro); err != nil {
		return nil, fmt.Errorf("micro_key_file: %w", err)
	}
	return a, nil
}

// followKey opens the key of a purpose, after recording the key in the ledger, and shows when it
// expires.
func (a *API) followKey(ctx context.Context, path string, purpose keyring.Purpose) (*keystore.Live, error) {
	live, err := keystore.Slot{Path: path, Purpose: purpose}.Follow(ctx, service.PatientLedger{Env: a.Env, Broker: a.broker})
	if err != nil {
		return nil, err
	}
	live.Expose(a.Env.Metrics)
	return live, nil
}

// AddRoutes adds the routes to a router, each with its scope.
func (a *API) AddRoutes(router *request.Router) {
	a.router = router
	router.Route("PUT /v1/cards/{card_id}", auth.CardsWrite, a.putCard)
	router.Route("POST /v1/cards/{card_id}/revoke", auth.CardsWrite, a.revokeCard)
	router.Route("GET /v1/cards/{card_id}", auth.CardsRead, a.getCard)
	router.Route("GET /v1/cards", auth.CardsRead, a.listCards)
	router.Public("GET /.well-known/alignment-card.json", a.getCurrentCard)
	router.Public("GET /.well-known/alignment-card-revocations.json", a.getRevocations)
	if len(a.Files.agentCards) > 0 {
		router.Public("GET /.well-known/agent-card.json", a.getAgentCard)
	}
	router.Route("POST /v1/sessions/end", auth.SessionsWrite, a.endSession)
	router.Route("POST /v1/handshake/{agent}", auth.Handshake, a.postHandshake)
	router.Public("GET /v1/handshake/keys", a.getHandshakeKeys)
	router.Route("POST /v1/messages", auth.MessagesWrite, a.postMessage)
	router.Route("POST /v1/messages/verify", auth.Runtime, a.verifyMessage)
	router.Route("POST /v1/tool-calls", auth.Runtime, a.postToolCall)
	router.Route("POST /v1/tool-results", auth.Runtime, a.postToolResult)
	router.Route("POST /v1/tool-results/verify", auth.Runtime, a.verifyToolResult)
	router.Route("POST /v1/micro", auth.MicroWrite, a.postMicro)
	router.Public("POST /v1/micro/verify", a.verifyMicro)
	router.Public("GET /v1/micro/keys", a.getMicroKeys)
	router.Route("POST /v1/dead-letters/marks", auth.LettersWrite, a.markDeadLetters)
	router.Public("GET /v1/schemas", listSchemas)
	router.Public("GET /v1/schemas/{name}", getSchema)
	router.Public("GET /v1/openapi.json", getOpenAPI)
}

// Run answers handshakes on the broker and follows rotations of keys, until ctx ends. What is in
// progress then may finish until work ends. known is closed once every card is in memory.
func (a *API) Run(ctx, work context.Context, known <-chan struct{}) error {
	watch := func(key *keystore.Live) func(context.Context) error {
		return func(context.Context) error {
			if key == nil {
				return nil
			}
			return key.Watch(ctx, a.Env.Log)
		}
	}
	return service.Group(work,
		func(work context.Context) error { return a.answerNATS(ctx, work, known) },
		watch(a.microKey), watch(a.handshakeKey),
		func(context.Context) error { return a.moveAcceptances(ctx) })
}

// moveAcceptances moves acceptances that an earlier version stored to where this version looks
// for them, until none is left or ctx ends.
func (a *API) moveAcceptances(ctx context.Context) error {
	for {
		younger := 0
		err := a.Env.Retry.Do(ctx, "move acceptances of messages", func() (err error) {
			younger, err = a.messages.MoveAcceptances(ctx, a.MessageBucket)
			return err
		})
		if err != nil || younger == 0 {
			return service.UnlessEnded(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.Config.MessageWindow):
		}
	}
}
