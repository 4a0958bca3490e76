package stream

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// Secure returns nil if handshake messages may travel over the current connection (AAP section
// 9.4): it does not leave this machine, or it is TLS 1.3 to a server that refuses connections
// without TLS. Otherwise the error wraps transport.ErrInsecure and says what to configure. While
// the connection is lost, the error is ErrUnavailable.
func (c *Client) Secure() error {
	address := c.conn.ConnectedAddr()
	if address == "" {
		return fmt.Errorf("look at the connection to the broker: %w", classify(nats.ErrDisconnected))
	}
	// If the server requires TLS, this connection made a handshake, so the last handshake is its
	// own.
	return transport.CheckBroker(address, c.conn.TLSRequired(), c.handshake.Load())
}
