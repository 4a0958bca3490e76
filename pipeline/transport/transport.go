// Package transport decides which connections may carry handshake messages (AAP section 9.4):
// those within one machine, and those over TLS 1.3.
//
// It owns the rule, the configuration of HTTPS servers and of clients that trust named certificates, and no connection. HTTP and NATS servers and clients use it to check
// theirs.
package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// MinimumTLS is the minimum version of TLS for connections that are not loopback.
const MinimumTLS = tls.VersionTLS13

// ErrInsecure marks a connection that must not carry handshake messages.
var ErrInsecure = errors.New("handshake messages travel over TLS 1.3 only, or within one machine")

// Loopback reports whether an address, host or host:port, is reachable only from this machine. A
// host name other than localhost does not count as loopback, because it could be changed to
// another address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check returns nil for an encrypted connection of at least MinimumTLS. A nil state means that
// the connection is not encrypted. The error wraps ErrInsecure.
func Check(state *tls.ConnectionState) error {
	switch {
	case state == nil:
		return fmt.Errorf("%w: this connection is not encrypted", ErrInsecure)
	case state.Version < MinimumTLS:
		return fmt.Errorf("%w: this connection has %s", ErrInsecure, tls.VersionName(state.Version))
	}
	return nil
}

// CheckBroker returns nil for a connection to a NATS server at an address within this machine. It
// also returns nil for a sufficiently encrypted connection to a server that requires TLS from
// every client, because then the messages of other clients are encrypted too. The error wraps
// ErrInsecure and says what to configure.
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

// Server returns the configuration of an HTTPS server with a certificate (PEM), or nil if none is given. TLS 1.3 is
// the minimum: handshake messages need it (AAP section 9.4), and every browser has it.
func Server(certFile, keyFile string) (*tls.Config, error) {
	if certFile == "" {
		return nil, nil
	}
	if keyFile == "" {
		return nil, fmt.Errorf("tls_cert_file %s: its key is missing: set tls_key_file, too", certFile)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls_cert_file %s, tls_key_file %s: %w", certFile, keyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: MinimumTLS}, nil
}
