package ingest

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/handshake"
)

// Config configures the ingest service.
type Config struct {
	config.Common `embed:""`
	Cards         config.Cards `embed:"" prefix:"card-"`
	Rules         `embed:""`

	Connections admission.Config `embed:""`

	Listen              string        `help:"Address for publishers; /healthz, /readyz, /metrics and /v1/limitations are served here too."`
	TokenFile           string        `help:"File of hashed tokens, one JSON object a line; needed unless the address is loopback." type:"path"`
	TLSCertFile         string        `name:"tls-cert-file" help:"Certificate (PEM) to serve HTTPS with." type:"path"`
	TLSKeyFile          string        `name:"tls-key-file" help:"Key (PEM) of the certificate." type:"path"`
	TLSClientCAFile     string        `name:"tls-client-ca-file" help:"Authorities (PEM) of publishers' certificates (mTLS): whoever shows none of theirs is not let in, to no address. Needs tls_cert_file. For probes there is admin_listen." type:"path"`
	CardSignatures      string        `help:"What is demanded of new cards: off; continuity (an agent whose cards have registered keys signs its next card with one of them); required (that, and every card is signed). A signature that is there is always verified."`
	CardIssuerKeysFile  string        `help:"File of public keys that may sign the cards of every agent, one JSON object a line: {key_id, algorithm, public_key}. The way out when an agent's key is lost." type:"path"`
	A2AAgentCards       []string      `name:"a2a-agent-cards" placeholder:"AGENT=FILE" help:"A2A agent cards to serve at /.well-known/agent-card.json, each with its agent's current Alignment Card in its alignment block. They must not be signed."`
	HandshakePeers      []string      `placeholder:"URL" help:"Services that are asked for the card of an agent that begins a handshake and is not registered here: https://host:port."`
	HandshakeKeyFile    string        `help:"Key that signs answers of the value coherence handshake: exactly 32 raw bytes, mode 0600, made where it is missing. All ingests share one." type:"path"`
	MicroKeyFile        string        `help:"Key that signs AIVS-Micro proofs: exactly 32 raw bytes, mode 0600, made where it is missing, and on the key list (keys.jsonl) beside it. All ingests share one." type:"path"`
	MessagePoliciesFile string        `help:"What each agent takes from whom, and the action class of its tools (docs/MESSAGES.md); without it no agent's messages are checked. The verifier is given the same file." type:"path"`
	MessageWindow       time.Duration `help:"How long a signed message, or the approval of one, stays fresh."`
	MaxBodyBytes        int64         `help:"Largest body of a request, both as sent and unpacked."`
	MaxInFlightBytes    int64         `help:"Memory for the bodies of all requests in hand; requests beyond it wait, then are pushed back."`
	MaxCardIndexBytes   int64         `help:"Memory for the index of all cards, which each service holds; where it is taken, no new card is registered."`
	RequestTimeout      time.Duration `help:"Longest time for a request, its upload included."`
}

// Rules decide the result of a handshake, together with the cards.
type Rules struct {
	MinCoherence float64 `help:"Least coherence score with which two agents may proceed (AAP section 8.3, MIN_COHERENCE_FOR_PROCEED)."`
	Methodology  string  `help:"How a min_coherence that is not the published one was derived (AAP section 8.3); every coherence_result names it."`
}

// DefaultRules returns the published thresholds.
func DefaultRules() Rules { return Rules{MinCoherence: aap.DefaultThresholds().MinCoherence} }

// Validate returns every fault.
func (r *Rules) Validate() (faults config.Faults) {
	faults.CheckThreshold("min_coherence", r.MinCoherence, DefaultRules().MinCoherence, r.Methodology)
	return faults
}

// thresholds returns the thresholds by which handshakes are judged.
func (r *Rules) thresholds() aap.Thresholds {
	th := aap.DefaultThresholds()
	th.MinCoherence, th.Methodology = r.MinCoherence, r.Methodology
	return th
}

// Default returns the configuration of an ingest service on loopback, open to this machine.
func Default() Config {
	return Config{
		Common:            config.DefaultCommon(""),
		Cards:             config.DefaultCards(),
		Rules:             DefaultRules(),
		Connections:       admission.Default(),
		Listen:            "127.0.0.1:8080",
		CardSignatures:    signaturesContinuity,
		HandshakeKeyFile:  "plumbline-data/keys/handshake.key",
		MicroKeyFile:      "plumbline-data/keys/micro.key",
		MessageWindow:     message.DefaultWindow,
		MaxBodyBytes:      64 << 20,
		MaxInFlightBytes:  256 << 20,
		MaxCardIndexBytes: 1 << 30,
		RequestTimeout:    5 * time.Minute,
	}
}

// Validate returns every fault.
func (c *Config) Validate() []config.Fault {
	faults := config.Faults(c.Common.Validate())
	faults.Check(c.Listen != "", "listen", "is empty: want host:port")
	faults.CheckAddress("listen", c.Listen)
	paired := (c.TLSCertFile == "") == (c.TLSKeyFile == "")
	faults.Check(paired, "tls_cert_file", "tls_cert_file and tls_key_file are given together or not at all")
	faults.Check(c.TLSClientCAFile == "" || c.TLSCertFile != "", "tls_client_ca_file", "needs tls_cert_file and tls_key_file")
	modes := []string{signaturesOff, signaturesContinuity, signaturesRequired}
	faults.Check(slices.Contains(modes, c.CardSignatures), "card_signatures", "%q: want %s", c.CardSignatures, strings.Join(modes, ", "))
	_, err := handshake.NewPeers(c.HandshakePeers)
	faults.Check(err == nil, "handshake_peers", "%v", err)
	faults = append(faults, c.Cards.Validate()...)
	faults = append(faults, c.Rules.Validate()...)
	c.Connections.Validate(faults.Check)
	faults.Check(c.HandshakeKeyFile != "", "handshake_key_file", "is empty: want where the key is, or is to be made")
	faults.Check(c.MicroKeyFile != "", "micro_key_file", "is empty: want where the key is, or is to be made")
	faults.Check(c.MessageWindow > 0, "message_window", "%s: want more than 0", c.MessageWindow)
	faults.Check(c.MaxBodyBytes >= windowBytes, "max_body_bytes", "%d: want at least %d", c.MaxBodyBytes, windowBytes)
	faults.Check(c.MaxInFlightBytes >= windowBytes, "max_in_flight_bytes", "%d: want at least %d", c.MaxInFlightBytes, windowBytes)
	faults.Check(c.MaxCardIndexBytes >= leastCardIndex, "max_card_index_bytes", "%d: want at least %d", c.MaxCardIndexBytes, leastCardIndex)
	faults.Check(c.RequestTimeout > 0, "request_timeout", "%s: want more than 0", c.RequestTimeout)
	return faults
}

// leastCardIndex is enough for a few thousand cards.
const leastCardIndex = 1 << 20
