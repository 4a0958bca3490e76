package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// openHandshakes creates the service that answers handshake messages on behalf of the agents in
// the registry. It does not create it if the connection to the broker, which carries their
// results, is not secure enough.
func (a *API) openHandshakes(ctx context.Context) error {
	a.link = a.Broker.Secure
	if err := a.link(); errors.Is(err, transport.ErrInsecure) {
		a.Env.Log.Warn("the handshake is not served", "reason", err)
		a.link = func() error { return err }
		return nil
	}
	key, err := a.followKey(ctx, a.Config.HandshakeKeyFile, keyring.Handshake)
	if err != nil {
		return fmt.Errorf("handshake_key_file: %w", err)
	}
	a.handshakeKey = key
	peers, err := handshake.NewPeers(a.Config.HandshakePeers)
	if err != nil {
		return fmt.Errorf("handshake_peers: %w", err)
	}
	thresholds := aap.DefaultThresholds()
	thresholds.MinCoherence, thresholds.Methodology = a.Config.MinCoherence, a.Config.Methodology
	a.handshakes, err = handshake.New(handshake.Parts{
		Cards: a.Cards, Peers: peers, Memory: a.HandshakeBucket, Results: a.Broker, Signer: key, Thresholds: thresholds,
		Now: time.Now, Metrics: a.Env.Metrics, Log: a.Env.Log,
	})
	return err
}

// answerNATS answers handshake messages on the broker, from the time when every card is known
// until ctx ends. It then answers those that have arrived. A service on the broker has one key
// for its whole life. When the key changes, a new service starts before the old one ends.
func (a *API) answerNATS(ctx, work context.Context, known <-chan struct{}) error {
	select {
	case <-known:
	case <-ctx.Done():
		return nil
	}
	if a.handshakes == nil {
		return nil
	}
	var before *stream.Service
	for {
		var responder *stream.Service
		err := a.Env.Retry.Do(ctx, "serve handshakes", func() (err error) {
			if responder == nil {
				responder, err = a.handshakes.ServeNATS(work, a.Broker, a.Env.Log)
			}
			if err == nil && before != nil {
				err = before.Drain(work)
			}
			return err
		})
		if err != nil {
			return errors.Join(service.UnlessEnded(ctx, err), a.drain(work, before), a.drain(work, responder))
		}
		before = responder
		select {
		case <-ctx.Done():
			return a.drain(work, responder)
		case <-a.handshakeKey.Taken():
		}
	}
}

// drain ends a service; nil means that there is none.
func (a *API) drain(work context.Context, responder *stream.Service) error {
	if responder == nil {
		return nil
	}
	err := responder.Drain(work)
	if errors.Is(err, stream.ErrUnavailable) { // nobody can be answered: the initiators begin again
		a.Env.Log.Warn("the broker is away, so some handshake messages get no answer; their initiators begin again", "error", err)
		return nil
	}
	return err
}

// postHandshake sends a message to the agent that the URL names, and returns its answer. It
// refuses an insecure connection before it reads the message.
func (a *API) postHandshake(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	if a.Insecure != nil {
		return 0, refuseHandshake(a.Insecure)
	}
	if err := a.link(); err != nil {
		return 0, refuseHandshake(err)
	}
	raw, err := a.router.Document(w, r, 2*schema.MaxHandshakeBytes, request.TypeJSON)
	if err != nil {
		return 0, err
	}
	answer, err := a.handshakes.Answer(r.Context(), handshake.Question{
		Responder: r.PathValue("agent"), Speaks: grant.SpeaksFor, Transport: handshake.OverHTTP, Raw: raw,
	})
	if err != nil {
		return 0, refuseHandshake(err)
	}
	w.Header().Set("Content-Type", request.TypeJSON)
	return problem.WriteText(w, http.StatusOK, append(answer, '\n')), nil
}

// refuseHandshake returns the problem in an error of the handshake, if it has one.
func refuseHandshake(err error) error {
	p := handshake.ProblemOf(err)
	switch {
	case p == nil:
		return fmt.Errorf("answer a handshake message: %w", err)
	case p.Code == http.StatusUpgradeRequired:
		return p.With("Upgrade", "TLS/1.3")
	}
	return p
}

// getHandshakeKeys returns the public keys that sign the answers, older keys included. Anyone may
// ask.
func (a *API) getHandshakeKeys(w http.ResponseWriter, _ *http.Request, _ auth.Grant) (int, error) {
	if a.handshakes == nil {
		return 0, refuseHandshake(a.link())
	}
	return writeKeys(w, a.handshakes.Keys()), nil
}
