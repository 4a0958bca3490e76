package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// silentFor is how long a server may be silent before the client moves to another one. A server
// that is stopped or cut off does not end its connections.
const silentFor = 12 * time.Second

// maxAsync is the maximum number of single publishes in flight on one connection.
const maxAsync = 4096

// Client is a connection to the broker. It reconnects forever, even after the broker refused its
// credentials. Only what the broker reports as a fault of this client ends it (see Closed). All
// methods are safe for concurrent use.
type Client struct {
	cfg  Config
	conn *nats.Conn
	js   jetstream.JetStream
	link atomic.Pointer[link]

	closed  context.Context // ends when the connection is closed permanently
	closing atomic.Bool     // Close was called

	refusals refusals // waiters for refusals of what this user may not do

	// handshake is the result of the last TLS handshake; nil without one.
	handshake atomic.Pointer[tls.ConnectionState]
}

// Connect connects within the context's time and Config.Timeout. It returns an ErrUnavailable if
// the broker cannot be reached. After a later loss of the connection, the client reconnects in
// the background.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg.complete()}
	closed, giveUp := context.WithCancel(context.Background())
	c.closed = closed
	c.link.Store(newLink())
	options, err := c.options(ctx, giveUp)
	if err != nil {
		return nil, err
	}
	c.conn, err = nats.Connect(cfg.URL, options...)
	if errors.Is(err, nats.ErrAuthorization) {
		err = fmt.Errorf("%w: the broker does not accept the credentials of %s: plumbline nats-config writes users and credentials", err, cmp.Or(cfg.Name, "this service"))
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the broker at %s: %w", redacted(cfg.URL), classify(err))
	}
	c.js, err = jetstream.New(c.conn,
		jetstream.WithPublishAsyncMaxPending(maxAsync),
		jetstream.WithPublishAsyncTimeout(c.cfg.Timeout),
		jetstream.WithDefaultTimeout(c.cfg.Timeout))
	if err != nil {
		c.conn.Close()
		return nil, fmt.Errorf("connect to the broker at %s: %w", redacted(cfg.URL), err)
	}
	if len(c.conn.Servers()) > 1 {
		go c.leaveIsolated(silentFor / failuresBeforeLeaving)
	}
	return c, nil
}

func (c *Client) options(ctx context.Context, giveUp context.CancelFunc) ([]nats.Option, error) {
	connectWithin := c.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		connectWithin = min(connectWithin, max(time.Until(deadline), time.Millisecond))
	}
	options := []nats.Option{
		nats.Name(c.cfg.Name),
		nats.Timeout(connectWithin),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, time.Second),
		nats.PingInterval(silentFor / failuresBeforeLeaving), // the third one without an answer ends the connection
		nats.DisconnectErrHandler(c.disconnected),
		nats.ReconnectHandler(c.reconnected),
		nats.ErrorHandler(c.asyncError),
		nats.IgnoreAuthErrorAbort(), // credentials may be corrected while the client tries
		nats.ClosedHandler(func(*nats.Conn) { giveUp() }),
	}
	if c.cfg.Dial != nil {
		options = append(options, nats.SetCustomDialer(dialer(c.cfg.Dial)))
	}
	if c.cfg.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(c.cfg.InboxPrefix))
	}
	login, err := c.cfg.login()
	if err != nil {
		return nil, err
	}
	return append(append(options, login...), c.tls()...), nil
}

// dialer adapts Config.Dial to the client library.
type dialer func(network, address string) (net.Conn, error)

// Dial connects.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

func (c Config) login() ([]nats.Option, error) {
	switch {
	case c.CredentialsFile != "":
		return []nats.Option{nats.UserCredentials(c.CredentialsFile)}, nil
	case c.NKeySeedFile != "":
		option, err := nats.NkeyOptionFromSeed(c.NKeySeedFile)
		if err != nil {
			return nil, fmt.Errorf("broker.nkey_seed_file %s: %w", c.NKeySeedFile, err)
		}
		return []nats.Option{option}, nil
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}, nil
	case c.Token != "":
		return []nats.Option{nats.Token(c.Token)}, nil
	}
	return nil, nil
}

// tls returns the options of an encrypted connection: TLS 1.3 at least (AAP section 9.4), whether
// the URL or the server requires it. It keeps the state of each handshake for Secure.
// TLSConnectionState of nats.go reads the state of the connection without its lock, which is a
// data race with the loss of the connection.
func (c *Client) tls() []nats.Option {
	options := []nats.Option{func(o *nats.Options) error {
		o.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS13,
			VerifyConnection: func(state tls.ConnectionState) error {
				c.handshake.Store(&state)
				return nil
			},
		}
		return nil
	}}
	if c.cfg.CAFile != "" {
		options = append(options, nats.RootCAs(c.cfg.CAFile))
	}
	if c.cfg.CertFile != "" {
		options = append(options, nats.ClientCert(c.cfg.CertFile, c.cfg.KeyFile))
	}
	return options
}

func (c *Client) asyncError(conn *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	if errors.Is(err, nats.ErrPermissionViolation) {
		c.refusals.came(c.refusalOf(conn, err))
	}
	c.cfg.Logger.Warn("the NATS client reports an error", "subject", subject, "error", err)
}

// Ping returns nil if the broker answers and has JetStream. It does not wait for a lost
// connection.
func (c *Client) Ping(ctx context.Context) error {
	if c.link.Load().Err() != nil {
		return fmt.Errorf("ping the broker: %w", classify(nats.ErrDisconnected))
	}
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	if _, err := c.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ping the broker: %w", classify(err))
	}
	return nil
}

// Closed waits until ctx ends and then returns nil. It returns an error when the broker has
// closed the connection in a way from which nats.go does not recover. Every later request would
// then fail, so the caller must connect again.
func (c *Client) Closed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.closed.Done():
		if c.closing.Load() {
			return nil
		}
		return fmt.Errorf("the broker closed the connection permanently: %w", c.conn.LastError())
	}
}

// Close sends what is still buffered, such as acks, and closes the connection.
func (c *Client) Close() error {
	c.closing.Store(true)
	defer c.conn.Close()
	if !c.conn.IsConnected() {
		return nil
	}
	if err := c.conn.FlushTimeout(c.cfg.Timeout); err != nil {
		return fmt.Errorf("close the connection to the broker: %w", err)
	}
	return nil
}

var secrets = regexp.MustCompile(`([^,:@]*://)?[^,]*@`)

// redacted hides users, passwords and tokens in a list of URLs, in any notation.
func redacted(list string) string { return secrets.ReplaceAllString(list, "${1}xxxxx@") }

// Secure returns nil if handshake messages may travel over the current connection (AAP section
// 9.4): it does not leave this machine, or it is TLS 1.3 to a server that refuses connections
// without TLS. Otherwise the error wraps transport.ErrInsecure and says what to configure. While
// the connection is lost, the error is ErrUnavailable.
func (c *Client) Secure() error {
	address := c.conn.ConnectedAddr()
	if address == "" {
		return fmt.Errorf("check the connection to the broker: %w", classify(nats.ErrDisconnected))
	}
	// If the server requires TLS, this connection made a handshake, so the last handshake is its
	// own.
	return transport.CheckBroker(address, c.conn.TLSRequired(), c.handshake.Load())
}
