// Package overnats sends the handshake's messages over NATS, for agents' runtimes
// that have a connection to the broker.
//
// It owns the request on the responder's subject and the rule for which connections are
// allowed; the messages belong to package client. It is a separate package because a
// runtime that uses only HTTP must not link NATS.
//
// Invariant: no message is sent over a connection that is not allowed (AAP section 9.4).
package overnats

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// Transport is a client.Transport over a broker that serves the handshake.
type Transport struct{ conn *nats.Conn }

// New returns a transport over the runtime's own connection. At each request the connection
// must use TLS 1.3 or lead to a broker on this machine:
//
//	nats.Connect("tls://broker:4222", nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}))
func New(conn *nats.Conn) *Transport { return &Transport{conn: conn} }

// Exchange sends a request on the responder's subject. The error wraps client.ErrInsecure if
// the connection is not allowed for the handshake.
func (t *Transport) Exchange(ctx context.Context, responder, requester string, message []byte) ([]byte, error) {
	if err := t.secure(); err != nil {
		return nil, err
	}
	answer, err := t.conn.RequestWithContext(ctx, subject.Handshake(responder, requester), message)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("no service answers handshakes on this broker: is an ingest running, and does it connect with TLS 1.3? %w", err)
	}
	if err != nil {
		return nil, err
	}
	if text := answer.Header.Get(micro.ErrorCodeHeader); text != "" {
		code, err := strconv.Atoi(text)
		if err != nil {
			code = http.StatusInternalServerError
		}
		return nil, client.ReadProblem(code, answer.Data)
	}
	return answer.Data, nil
}

// secure checks the connection at each request, because it may have been re-established.
func (t *Transport) secure() error {
	address := t.conn.ConnectedAddr()
	if address == "" {
		return nats.ErrDisconnected
	}
	if state, err := t.conn.TLSConnectionState(); err == nil {
		return transport.CheckBroker(address, t.conn.TLSRequired(), &state)
	}
	return transport.CheckBroker(address, t.conn.TLSRequired(), nil)
}
