package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/client/mcprecorder"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/transport"
)

type mcpCommand struct {
	ingestFlags `embed:""`
	Agent       string   `required:"" help:"agent_id of the traces."`
	Card        string   `help:"card_id of the traces. Default: the agent's registered card that is in force."`
	Register    bool     `help:"If the agent has no card in force, register a minimal one: it permits the tools that the server offers."`
	Server      string   `help:"Name of the MCP server. Default: the name that it reports."`
	Session     string   `help:"session_id of the traces, which then have no sequence numbers. Default: a new one for each MCP session."`
	Listen      string   `placeholder:"ADDR" help:"Record streamable HTTP: listen on this address. Needs --upstream."`
	Upstream    string   `placeholder:"URL" help:"The MCP server's address, for --listen. Clients use the same path on the address of --listen."`
	Enforce     bool     `help:"Ask ingest before each call (docs/MESSAGES.md), and answer calls that are denied, or that it cannot decide, with a tool error. Needs --session."`
	MessageID   string   `name:"message-id" placeholder:"ID" help:"For --enforce: the accepted message that calls rely on. A call's own _meta[\"plumbline/message_id\"] takes precedence."`
	Spool       string   `placeholder:"DIR" help:"Keep traces here until ingest has stored them. Default: the state directory of the user."`
	Key         string   `placeholder:"FILE" help:"Sign traces with this Ed25519 key. Needs --key-id."`
	KeyID       string   `name:"key-id" placeholder:"ID" help:"Name of the key in the agent's card."`
	Durable     bool     `help:"Write each trace to the disk before the answer of its call is passed on."`
	Command     []string `arg:"" optional:"" passthrough:"" help:"Record stdio: the command of the MCP server and its arguments, after --."`
}

// Help returns the examples.
func (*mcpCommand) Help() string {
	return examples(
		"plumbline mcp --agent ann-assistant --register -- npx my-server",
		"plumbline mcp --agent ann-assistant --register --listen 127.0.0.1:9000 --upstream https://tools.example/mcp",
	)
}

// exited ends the tool with the exit code of the command that it ran.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// How long the end waits for the delivery of traces. Clients kill a server over stdio that does
// not end after some seconds; the spool keeps what is left.
const (
	stdioPatience = 1500 * time.Millisecond
	httpPatience  = 5 * time.Second
)

// Run records until the MCP server or, with --listen, the command itself is ended.
func (c *mcpCommand) Run(ctx context.Context, con *console) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	upstream, err := c.check()
	if err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintf(con.errs, "plumbline mcp: %s\n", printable(text)) }
	where := c.ingest(ctx)
	card, err := c.findCard(ctx, where)
	if err != nil {
		return err
	}
	recorder, err := c.recorder(where, card.id, say)
	if err != nil {
		return usageError{err}
	}
	config := mcprecorder.Config{
		AgentID: c.Agent, CardID: card.id, Recorder: recorder, SessionID: c.Session, Server: c.Server, MessageID: c.MessageID, Report: say,
	}
	if c.Enforce {
		gateway, err := client.NewHTTP(client.HTTPConfig{URL: where.URL, Token: where.Token})
		if err != nil {
			return usageError{err}
		}
		defer gateway.Close()
		config.Enforce = gateway
	}
	registering, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var registration sync.WaitGroup
	var offered sync.Once
	if card.missing {
		config.Offered = func(tools []string) {
			offered.Do(func() { registration.Go(func() { card.register(registering, where, tools, say) }) })
		}
	}
	patience := stdioPatience
	if upstream != nil {
		patience = httpPatience
		err = c.serve(ctx, config, upstream, say)
	} else {
		err = c.runCommand(ctx, config, con)
	}
	time.AfterFunc(patience, stop)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if waiting := recorder.Close(closing); waiting != nil && recorder.Stats().Waiting > 0 {
		say(fmt.Sprintf("traces are not stored yet, %d of them: they wait in the spool for the agent's next recorder", recorder.Stats().Waiting))
	}
	registration.Wait()
	offered.Do(func() {
		if card.missing && recorder.Stats().Recorded > 0 {
			say("no card was registered, because the client never asked the server for its tools: the traces cannot be judged until you register card " + card.id + " (plumbline card put)")
		}
	})
	return err
}

// check examines the command line. upstream is nil for stdio.
func (c *mcpCommand) check() (upstream *url.URL, err error) {
	switch {
	case len(c.Command) == 0 && c.Listen == "" && c.Upstream == "":
		return nil, usagef("name the command of the MCP server after --, or --listen and --upstream")
	case len(c.Command) > 0 && (c.Listen != "" || c.Upstream != ""):
		return nil, usagef("a command is for stdio, --listen and --upstream for HTTP: name one of both")
	case (c.Listen == "") != (c.Upstream == ""):
		return nil, usagef("--listen and --upstream need each other")
	case c.Enforce && c.Session == "":
		return nil, usagef("--enforce needs --session: messages are signed for one session")
	case (c.Key == "") != (c.KeyID == ""):
		return nil, usagef("--key and --key-id need each other")
	case c.Upstream == "":
		return nil, nil
	}
	upstream, err = url.Parse(c.Upstream)
	if err != nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return nil, usagef("--upstream: %q: want http://host:port/path or https://host:port/path", c.Upstream)
	}
	return upstream, nil
}

// ingest returns the client of ingest. Without --url and without a running up, traces wait in the
// spool for an ingest at the usual address.
func (c *mcpCommand) ingest(ctx context.Context) *client.Publisher {
	where := &client.Publisher{URL: c.URL, Token: c.Token}
	if where.URL == "" {
		where.URL = "http://127.0.0.1:8080"
		if at, err := c.find(ctx); err == nil {
			where.URL = at.IngestURL
		}
	}
	return where
}

func (c *mcpCommand) recorder(where *client.Publisher, cardID string, say func(string)) (*client.Recorder, error) {
	config := client.RecorderConfig{
		AgentID: c.Agent, CardID: cardID, URL: where.URL, Token: where.Token, Spool: c.Spool, Durable: c.Durable, KeyID: c.KeyID,
		OnError: func(e *client.RecordError) {
			for _, fault := range e.Faults {
				e.Message += "; " + fault.String()
			}
			say(e.Message)
		},
		OnWarning: func(code, message, traceID string) {
			say(fmt.Sprintf("warning %s: %s (trace %s)", code, message, traceID))
		},
	}
	if c.Key != "" {
		key, err := keyfile.Load(c.Key)
		if err != nil {
			return nil, err
		}
		config.Key = key
	}
	return client.NewRecorder(config)
}

// runCommand records an MCP server over stdio.
func (c *mcpCommand) runCommand(ctx context.Context, config mcprecorder.Config, con *console) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	// A client that has gone must not end the recorder before its traces are stored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stdio := mcprecorder.Stdio{
		Config: config, Command: c.Command, In: os.Stdin, Out: os.Stdout, Err: con.errs, Signals: signals,
		Env: slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PLUMBLINE_TOKEN=") }),
	}
	code, err := stdio.Run(context.WithoutCancel(ctx))
	if err == nil && code != 0 {
		return exited(code)
	}
	if err != nil {
		return usageError{err}
	}
	return nil
}

// serve records an MCP server over HTTP, until ctx ends.
func (c *mcpCommand) serve(ctx context.Context, config mcprecorder.Config, upstream *url.URL, say func(string)) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	at := listener.Addr().String()
	proxy := mcprecorder.NewHTTP(config, upstream, transport.Loopback(at))
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	say(fmt.Sprintf("recording agent %s: use http://%s%s instead of %s", c.Agent, at, upstream.EscapedPath(), upstream))
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil { // streams do not end by themselves
			_ = server.Close()
		}
	})
	if err = server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		proxy.End()
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	proxy.End()
	return nil
}
