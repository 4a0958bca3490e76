package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// ServiceConfig configures a request-reply service. Any number of processes may serve the same
// one: each request reaches one of them.
type ServiceConfig struct {
	Name        string // A-Z, a-z, 0-9, '-' and '_'
	Version     string // semantic, such as "1.0.0"
	Description string
	Metadata    map[string]string // shown in the answer to INFO

	Endpoint string // its name in INFO and STATS
	Subject  string // of the requests, wildcards allowed
}

// ServiceFault is the answer to a request that failed.
type ServiceFault struct {
	Code        int    // an HTTP status
	Description string // for people, one line
	Data        []byte // JSON, for programs
}

// Error returns the description, so a ServiceFault is an error.
func (f *ServiceFault) Error() string { return f.Description }

// Service is a NATS micro service (nats.go/micro). It answers PING, INFO and STATS in addition to
// its endpoint. One process answers one request at a time.
type Service struct {
	client *Client
	micro  micro.Service
	inHand sync.WaitGroup
}

// Serve answers requests with handle, whose context is ctx, until Drain. A request that is sent
// while the connection is lost never arrives, and its sender learns that. If the connection is
// closed, the error is an ErrUnavailable.
func (c *Client) Serve(ctx context.Context, cfg ServiceConfig, handle func(ctx context.Context, subject string, data []byte) ([]byte, *ServiceFault)) (*Service, error) {
	s := &Service{client: c}
	before := c.conn.LastError()
	var err error
	s.micro, err = micro.AddService(c.conn, micro.Config{
		Name: cfg.Name, Version: cfg.Version, Description: cfg.Description, Metadata: cfg.Metadata,
	})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", cfg.Name, classify(err))
	}
	answer := micro.HandlerFunc(func(r micro.Request) {
		s.inHand.Add(1)
		defer s.inHand.Done()
		data, fault := handle(ctx, r.Subject(), r.Data())
		var err error
		switch {
		case r.Reply() == "": // a plain publish: nobody waits for an answer
		case fault != nil:
			err = r.Error(strconv.Itoa(fault.Code), fault.Description, fault.Data)
		default:
			err = r.Respond(data)
		}
		if err != nil {
			c.cfg.Logger.Warn("a request cannot be answered", "service", cfg.Name, "error", err)
		}
	})
	if err := s.micro.AddEndpoint(cfg.Endpoint, answer, micro.WithEndpointSubject(cfg.Subject)); err != nil {
		return nil, fmt.Errorf("serve %s on %s: %w", cfg.Name, cfg.Subject, classify(err))
	}
	// Wait until the broker has processed the subscription: before that no request would arrive.
	// If the connection is lost, nats.go subscribes as soon as it is back.
	if err = c.flush(ctx); err == nil {
		err = c.subscribed(before, cfg.Subject)
	}
	if err == nil || errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrRefused) {
		return s, nil
	}
	return nil, errors.Join(fmt.Errorf("serve %s on %s: %w", cfg.Name, cfg.Subject, err), s.micro.Stop())
}

// subscribed returns the refusal of one of a service's subscriptions, if there was one since
// before, which was then the connection's last error.
func (c *Client) subscribed(before error, subject string) error {
	last := c.conn.LastError()
	//lint:ignore errorlint whether it is the same error, not one of the same kind
	if last == before || !errors.Is(last, nats.ErrPermissionViolation) {
		return nil
	}
	if r := c.refusalOf(c.conn, last); r.subject == subject || strings.HasPrefix(r.subject, "$SRV.") {
		return r
	}
	return nil
}

// flush returns when the broker has processed everything that was sent to it before.
func (c *Client) flush(ctx context.Context) error {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	return classify(c.conn.FlushWithContext(ctx))
}

// Drain accepts no more requests and returns when the received ones are answered, or ctx ends. If
// the error is an ErrUnavailable the service continues, and Drain may be called again.
func (s *Service) Drain(ctx context.Context) error {
	// While the connection is lost, nats.go would forget the subscription, but subscribe again at
	// the broker. Requests would then arrive without a handler.
	if err := s.client.flush(ctx); err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	if err := s.micro.Stop(); err != nil {
		return fmt.Errorf("stop the service: %w", classify(err))
	}
	if err := s.client.flush(ctx); err != nil { // everything that the broker sent so far has arrived
		return fmt.Errorf("stop the service: %w", err)
	}
	answered := make(chan struct{})
	if err := s.client.conn.Barrier(func() { close(answered) }); err != nil { // runs after it in every queue
		return fmt.Errorf("stop the service: %w", classify(err))
	}
	select {
	case <-answered:
		s.inHand.Wait()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the service: requests are left unanswered: %w", ctx.Err())
	}
}
