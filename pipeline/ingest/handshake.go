package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// secure returns nil if handshake messages may travel over a listener (AAP section 9.4).
// Otherwise the error says what to configure.
func (c *Config) secure(listener net.Addr) error {
	if c.TLSCertFile != "" || transport.Loopback(listener.String()) {
		return nil
	}
	return fmt.Errorf("%w: %s is neither: set tls_cert_file and tls_key_file, or listen on 127.0.0.1", transport.ErrInsecure, listener)
}

// prepareHandshakes creates the service that answers handshake messages on behalf of the agents
// in the registry. It does not create it if the connection to the broker, which carries their
// results, is not secure enough.
func (s *server) prepareHandshakes(ctx context.Context, broker *stream.Client, registry *cards.Registry, memory *stream.Bucket) error {
	if err := broker.Secure(); errors.Is(err, transport.ErrInsecure) {
		s.env.Log.Warn("the handshake is not served", "reason", err)
		s.link = func() error { return err }
		return nil
	}
	s.link = broker.Secure
	key, err := s.followKey(ctx, s.cfg.HandshakeKeyFile, keyring.Handshake)
	if err != nil {
		return fmt.Errorf("handshake_key_file: %w", err)
	}
	s.handshakeKey = key
	peers, err := handshake.NewPeers(s.cfg.HandshakePeers)
	if err != nil {
		return fmt.Errorf("handshake_peers: %w", err)
	}
	s.handshakes, err = handshake.New(handshake.Parts{
		Cards: registry, Peers: peers, Memory: memory, Results: broker, Signer: key, Thresholds: s.cfg.thresholds(),
		Now: time.Now, Metrics: s.env.Metrics, Log: s.env.Log,
	})
	return err
}

// answerNATS answers handshake messages on the broker, from the time when every card is known
// until ctx ends. It then answers those that have arrived. A service on the broker has one key
// for its whole life. When the key changes, a new service starts before the old one ends.
func (s *server) answerNATS(ctx, work context.Context, broker *stream.Client, known <-chan struct{}) error {
	select {
	case <-known:
	case <-ctx.Done():
		return nil
	}
	if s.handshakes == nil {
		return nil
	}
	var before *stream.Service
	for {
		var responder *stream.Service
		err := s.env.Retry.Do(ctx, "serve handshakes", func() (err error) {
			if responder == nil {
				responder, err = s.handshakes.ServeNATS(work, broker, s.env.Log)
			}
			if err == nil && before != nil {
				err = before.Drain(work)
			}
			return err
		})
		if err != nil {
			return errors.Join(service.UnlessEnded(ctx, err), s.drain(work, before), s.drain(work, responder))
		}
		before = responder
		select {
		case <-ctx.Done():
			return s.drain(work, responder)
		case <-s.handshakeKey.Taken():
		}
	}
}

// drain ends a service; nil means that there is none.
func (s *server) drain(work context.Context, responder *stream.Service) error {
	if responder == nil {
		return nil
	}
	err := responder.Drain(work)
	if errors.Is(err, stream.ErrUnavailable) { // nobody can be answered: the initiators begin again
		s.env.Log.Warn("handshake messages may be left unanswered", "error", err)
		return nil
	}
	return err
}

// postHandshake sends a message to the agent that the URL names, and returns its answer.
func (s *server) postHandshake(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	answer, err := s.askResponder(w, r, grant)
	if err != nil {
		return s.refuseHandshake(w, r, err)
	}
	w.Header().Set("Content-Type", "application/json")
	return write(w, http.StatusOK, append(answer, '\n'))
}

func (s *server) refuseHandshake(w http.ResponseWriter, r *http.Request, err error) int {
	var refused *problem
	if errors.As(err, &refused) {
		return refused.write(w)
	}
	p := handshake.ProblemOf(err)
	if p == nil {
		return s.failure("answer a handshake message", err).write(w)
	}
	if p.Code == http.StatusUpgradeRequired {
		w.Header().Set("Upgrade", "TLS/1.3")
	}
	return writeJSON(w, p.Code, p)
}

func (s *server) askResponder(w http.ResponseWriter, r *http.Request, grant auth.Grant) ([]byte, error) {
	if s.exposed != nil {
		return nil, s.exposed
	}
	if err := s.link(); err != nil {
		return nil, err
	}
	raw, p := s.document(w, r, 2*schema.MaxHandshakeBytes, typesOfOther...)
	if p != nil {
		return nil, p
	}
	return s.handshakes.Answer(r.Context(), handshake.Question{
		Responder: r.PathValue("agent"), Speaks: grant.SpeaksFor, Transport: handshake.OverHTTP, Raw: raw,
	})
}

// getHandshakeKeys returns the public keys that sign the answers, older keys included. Anyone may
// ask.
func (s *server) getHandshakeKeys(w http.ResponseWriter, r *http.Request) int {
	if s.handshakes == nil {
		return s.refuseHandshake(w, r, s.link())
	}
	return writeKeys(w, s.handshakes.Keys())
}
