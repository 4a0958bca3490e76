package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// NATS is a Transport over a broker that the handshake is served on.
type NATS struct{ conn *nats.Conn }

// NewNATS returns a transport over a connection of the runtime's own, which must
// be of TLS 1.3 or to a broker on this machine whenever it is used:
//
//	nats.Connect("tls://broker:4222", nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}))
func NewNATS(conn *nats.Conn) *NATS { return &NATS{conn: conn} }

// Exchange asks on the responder's subject.
func (n *NATS) Exchange(ctx context.Context, responder, requester string, message []byte) ([]byte, error) {
	if err := n.secure(); err != nil {
		return nil, err
	}
	answer, err := n.conn.RequestWithContext(ctx, subject.Handshake(responder, requester), message)
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
		return nil, problem(code, answer.Data)
	}
	return answer.Data, nil
}

// secure judges the connection as it stands: it may have been made anew.
func (n *NATS) secure() error {
	address := n.conn.ConnectedAddr()
	if address == "" {
		return nats.ErrDisconnected
	}
	if state, err := n.conn.TLSConnectionState(); err == nil {
		return transport.CheckBroker(address, n.conn.TLSRequired(), &state)
	}
	return transport.CheckBroker(address, n.conn.TLSRequired(), nil)
}
