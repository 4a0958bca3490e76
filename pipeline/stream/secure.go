package stream

import (
	"crypto/tls"
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
	if state, err := c.conn.TLSConnectionState(); err == nil {
		return secure(address, c.conn.TLSRequired(), &state)
	}
	return secure(address, c.conn.TLSRequired(), nil)
}

// secure judges a connection to a server that does or does not demand TLS.
func secure(address string, demanded bool, state *tls.ConnectionState) error {
	switch {
	case transport.Loopback(address):
		return nil
	case state == nil || !demanded:
		return fmt.Errorf("%w: the connection to the broker at %s is not, or need not be, encrypted: "+
			"set tls {…} in the broker's configuration and nats_url to tls://%s", transport.ErrInsecure, address, address)
	}
	if err := transport.Check(state); err != nil {
		return fmt.Errorf("the connection to the broker at %s: %w", address, err)
	}
	return nil
}
