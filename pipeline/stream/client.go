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

// link is the connection from one loss to the next. Its context ends at a loss, so nobody waits
// for an answer that can no longer arrive.
type link struct {
	context.Context
	cut  context.CancelFunc
	lost atomic.Pointer[time.Time] // nil while connected
	next chan struct{}             // closed when the next link is connected
}

func newLink() *link {
	l := &link{next: make(chan struct{})}
	l.Context, l.cut = context.WithCancel(context.Background())
	return l
}

func (c *Client) disconnected(_ *nats.Conn, err error) {
	now, lost := time.Now(), c.link.Load()
	lost.lost.CompareAndSwap(nil, &now)
	lost.cut()
	if err != nil {
		c.cfg.Logger.Warn("connection to the broker lost", "error", err)
	}
}

func (c *Client) reconnected(conn *nats.Conn) {
	close(c.link.Swap(newLink()).next)
	c.cfg.Logger.Info("connected to the broker again", "url", conn.ConnectedUrlRedacted())
}

// within returns a context for one request. The context ends after d, or when the connection is
// lost. While the connection is lost, within waits until it is back.
func (c *Client) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.connectedLink(ctx), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// connectedLink waits for a connected link. It returns a lost one if ctx ends first.
func (c *Client) connectedLink(ctx context.Context) *link {
	for {
		l := c.link.Load()
		if l.Err() == nil {
			return l
		}
		select {
		case <-l.next:
		case <-ctx.Done():
			return l
		}
	}
}

// away reports whether the connection has been lost for so long that waiting is useless.
func (c *Client) away() bool {
	since := c.link.Load().lost.Load()
	return since != nil && time.Since(*since) > c.cfg.Timeout
}

// failuresBeforeLeaving is how many checks in a row must fail before the client moves to another
// server.
const failuresBeforeLeaving = 3

// leaveIsolated leaves a server that is connected but has had no JetStream for a while. It runs
// until the client is closed. Such a server may be cut off from its peers, which continue without
// it, and the connection to it would last as long as the server does. If no server has a
// majority, the client tries one after another, which is harmless.
func (c *Client) leaveIsolated(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failures := 0; ; {
		select {
		case <-c.closed.Done():
			return
		case <-tick.C:
		}
		if failures++; c.answers(every) || c.conn.Status() != nats.CONNECTED { // it may be lost meanwhile
			failures = 0
		}
		if failures < failuresBeforeLeaving {
			continue
		}
		failures = 0
		c.cfg.Logger.Warn("this server has no JetStream and may be cut off from its cluster; connecting to another one",
			"url", c.conn.ConnectedUrlRedacted())
		if err := c.conn.ForceReconnect(); err != nil {
			return // the client is closed
		}
	}
}

// answers reports whether JetStream answers within the time. An error answer counts.
func (c *Client) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.closed, within)
	defer cancel()
	return !errors.Is(c.Ping(ctx), ErrUnavailable)
}
