// Package overnats carries the handshake's messages over NATS, for agents' runtimes
// that have a connection to the broker.
//
// It owns the request on the responder's subject and the rule of what connection is fit
// for it; the messages are package client's. It is a package of its own so that a runtime
// that speaks HTTP links no NATS.
//
// Invariant: no message leaves over a connection that is not fit for it (AAP section 9.4).
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

// Transport is a client.Transport over a broker that the handshake is served on.
type Transport struct{ conn *nats.Conn }

// New returns a transport over a connection of the runtime's own, which must
// be of TLS 1.3 or to a broker on this machine whenever it is used:
//
//	nats.Connect("tls://broker:4222", nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}))
func New(conn *nats.Conn) *Transport { return &Transport{conn: conn} }

// Exchange asks on the responder's subject. The error wraps client.ErrInsecure where the
// connection is not fit for the handshake.
func (t *Transport) Exchange(ctx context.Context, responder, requester string, message []byte) ([]byte, error) {
	if err := t.secure(); err != nil {
		return nil, err
	}
	answer, err := t.conn.RequestWithContext(ctx, subject.Handshake(responder, requester), message)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("nobody serves the handshake on this broker: is an ingest running, and its connection TLS 1.3? %w", err)
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

// secure checks the connection at each request: it may have been made again.
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
