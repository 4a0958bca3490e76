package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/pipeline/webhook"
)

type webhookCommands struct {
	Secret  webhookSecretCommand  `cmd:"" help:"Print a new secret, for the secret file of an endpoint and for its receiver."`
	Receive webhookReceiveCommand `cmd:"" help:"Receive alerts on this machine, check their signatures and print them: a receiver to try webhooks with."`
}

type webhookSecretCommand struct{}

// Help returns the examples.
func (*webhookSecretCommand) Help() string {
	return examples("plumbline webhook secret | install -m 0600 /dev/stdin webhook.secret")
}

func (*webhookSecretCommand) Run(con *console) error {
	_, err := fmt.Fprintln(con.out, webhook.NewSecret().Text())
	return err
}

type webhookReceiveCommand struct {
	SecretFile string `required:"" type:"path" placeholder:"FILE" help:"File with the secrets of the endpoint, one a line."`
	Listen     string `default:"127.0.0.1:9100" placeholder:"ADDRESS" help:"Address on this machine; port 0: any free port (${default})."`
	Count      int    `placeholder:"N" help:"Exit after N alerts with a good signature. Default: on Ctrl-C."`
}

// Help returns the examples.
func (*webhookReceiveCommand) Help() string {
	return examples("plumbline webhook receive --secret-file webhook.secret", "plumbline webhook receive --secret-file webhook.secret --listen 127.0.0.1:0 --count 1")
}

// received is a line of output.
type received struct {
	ID        string          `json:"webhook_id"`
	Signature string          `json:"signature"` // "good", or the fault
	Body      json.RawMessage `json:"body,omitempty"`
}

// mostReceived is larger than any alert.
const mostReceived = 16 << 20

// Run answers 204 to each message whose signature is good, and 401 to the others, until ctx ends.
func (c *webhookReceiveCommand) Run(ctx context.Context, con *console) error {
	secrets, err := webhook.ReadSecrets(c.SecretFile)
	if err != nil {
		return usageError{err}
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || !transport.Loopback(host) {
		return usagef("--listen %q: want 127.0.0.1:PORT: this receiver is to try webhooks on this machine", c.Listen)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for alerts: %w", err)
	}
	fmt.Fprintf(con.errs, "receiving alerts at http://%s/; Ctrl-C stops it\n", listener.Addr())
	ctx, stop := context.WithCancelCause(ctx)
	good := 0
	turn := make(chan struct{}, 1) // one message at a time, so that lines and the count are whole
	server := &http.Server{ReadTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn <- struct{}{}
		defer func() { <-turn }()
		if c.Count > 0 && good >= c.Count {
			http.Error(w, "this receiver has all that it waited for", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostReceived))
		if err != nil {
			http.Error(w, "the message cannot be read", http.StatusBadRequest)
			return
		}
		line, code := received{ID: r.Header.Get(webhook.HeaderID), Signature: "good", Body: body}, http.StatusNoContent
		if err := webhook.Verify(r.Header, secrets, time.Now(), body); err != nil {
			line.Signature, line.Body, code = err.Error(), nil, http.StatusUnauthorized // anyone may have written it
		} else {
			good++
		}
		if err := writeEach(con.out, []received{line}); err != nil {
			stop(err)
			code = http.StatusInternalServerError // it is sent again
		}
		w.WriteHeader(code)
		if c.Count > 0 && good >= c.Count {
			stop(nil)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("receive alerts: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		return fmt.Errorf("end the receiver: %w", err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
