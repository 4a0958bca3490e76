package ingest

import (
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/schema"
)

// files holds the contents of the files that the configuration names.
type files struct {
	keeper      *auth.Keeper
	certificate *tls.Config // nil: plain HTTP
	issuers     []schema.Key
	agentCards  agentCards
	policies    *messages.Policies
}

// readFiles reads all files and returns every fault. address is the listener's address.
func (c *Config) readFiles(address string, log *slog.Logger) (f files, faults config.Faults) {
	check := func(key string, err error) { faults.Check(err == nil, key, "%v", err) }
	var err error
	f.keeper, err = auth.Open(c.TokenFile, address, log)
	check("token_file", err)
	f.certificate, err = c.certificate()
	check("tls_cert_file", err)
	check("tls_client_ca_file", c.demandCertificates(f.certificate))
	f.issuers, err = readIssuers(c.CardIssuerKeysFile)
	check("card_issuer_keys_file", err)
	f.agentCards, err = readAgentCards(c.A2AAgentCards)
	check("a2a_agent_cards", err)
	f.policies, err = messages.OpenPolicies(c.MessagePoliciesFile, c.TokenFile == "", log)
	check("message_policies_file", err)
	return f, faults
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	address := c.Listen
	if _, _, err := net.SplitHostPort(address); err != nil { // reported as a fault of its own
		address = "127.0.0.1:0"
	}
	_, faults := c.readFiles(address, slog.New(slog.DiscardHandler))
	return append(c.Common.FileFaults(), faults...)
}
