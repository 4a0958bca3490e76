package stream

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// Secure returns nil where handshake messages may travel over the connection as
// it stands (AAP section 9.4): it does not leave this machine, or it is TLS 1.3
// to a server that lets nobody in without TLS. Otherwise the error wraps
// transport.ErrInsecure and says what to configure; ErrUnavailable while the
// connection is lost.
func (c *Client) Secure() error {
	address := c.conn.ConnectedAddr()
	if address == "" {
		return fmt.Errorf("look at the connection to the broker: %w", classify(nats.ErrDisconnected))
	}
	// A server that demands TLS got here by a handshake, so the last one is its own.
	return transport.CheckBroker(address, c.conn.TLSRequired(), c.handshake.Load())
}
