// Package transport says over what handshake messages may travel (AAP section
// 9.4): within one machine, or over TLS 1.3.
//
// It owns the rule and no connection: HTTP and NATS, servers and clients, ask it
// about theirs.
package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// MinimumTLS is the least version of TLS off loopback.
const MinimumTLS = tls.VersionTLS13

// ErrInsecure marks a connection over which no handshake message may travel.
var ErrInsecure = errors.New("handshake messages travel over TLS 1.3 only, or within one machine")

// Loopback tells whether only this machine reaches an address, host or host:port.
// A host name other than localhost is not taken to be loopback: it could be
// re-pointed.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check returns nil for an encrypted connection of at least MinimumTLS, nil being
// one that is not encrypted. The error wraps ErrInsecure.
func Check(state *tls.ConnectionState) error {
	switch {
	case state == nil:
		return fmt.Errorf("%w: this connection is not encrypted", ErrInsecure)
	case state.Version < MinimumTLS:
		return fmt.Errorf("%w: this connection has %s", ErrInsecure, tls.VersionName(state.Version))
	}
	return nil
}

// CheckBroker returns nil for a connection to a NATS server at address within
// this machine, or one that is encrypted as it must be, to a server that demands
// (lets nobody in without) TLS: what another client publishes there goes the same
// way. The error wraps ErrInsecure and says what to configure.
func CheckBroker(address string, demands bool, state *tls.ConnectionState) error {
	if Loopback(address) {
		return nil
	}
	if state == nil || !demands {
		return fmt.Errorf("%w: the connection to the broker at %s is not, or need not be, encrypted: "+
			"set tls {…} in the broker's configuration and nats_url to tls://%s", ErrInsecure, address, address)
	}
	if err := Check(state); err != nil {
		return fmt.Errorf("the connection to the broker at %s: %w", address, err)
	}
	return nil
}
