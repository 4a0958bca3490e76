package pipelinetest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
)

// Serve runs a stage with the given settings until its context ends.
type Serve func(context.Context, config.Common, config.ClickHouse, *service.Env) error

// EndsWhenExpelled runs a stage. It checks that the stage ends with an error that names the cause
// when the broker has closed its connection permanently.
func (r *Rig) EndsWhenExpelled(t testing.TB, serve Serve) {
	t.Helper()
	expeller := r.newExpeller(t)
	common, env, ended := r.Common(), Env(t, "expelled"), make(chan error, 1)
	common.NATS.URL = expeller.url()
	env.DrainBudget = time.Second // without a connection nothing can be finished
	go func() { ended <- serve(t.Context(), common, r.ClickHouse(), env) }()
	Await(t, "the stage", func() bool { return env.Health.Reported().Ready })
	expeller.expel()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("the stage ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the stage continues without a connection")
	}
}

// expeller is a proxy between a stage and its broker. A real broker rejects a client for good
// only if the client violates the protocol, which a stage does not do.
type expeller struct {
	t        testing.TB
	broker   *url.URL
	listener net.Listener

	mu     sync.Mutex
	conns  []net.Conn
	expels bool
}

// newExpeller returns an expeller that listens until the test ends.
func (r *Rig) newExpeller(t testing.TB) *expeller {
	t.Helper()
	broker, err := url.Parse(r.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	e := &expeller{t: t, broker: broker}
	if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := e.listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = e.listener.Close()
		e.cut()
		ended.Wait()
	})
	return e
}

// url returns the address of the expeller, in place of the broker's.
func (e *expeller) url() string {
	by := *e.broker
	by.Host = e.listener.Addr().String()
	return by.String()
}

// expel tells every client, when it reconnects, that it violated the protocol.
func (e *expeller) expel() {
	e.mu.Lock()
	e.expels = true
	e.mu.Unlock()
	e.cut()
}

func (e *expeller) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.conns {
		_ = conn.Close()
	}
	e.conns = nil
}

// serve forwards the data between client and broker.
func (e *expeller) serve(client net.Conn) {
	broker, err := net.Dial("tcp", e.broker.Host)
	if err != nil {
		e.t.Error(err)
		return
	}
	e.mu.Lock()
	e.conns = append(e.conns, client, broker)
	expels := e.expels
	e.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(broker, client)
		_ = broker.Close()
	})
	lines := bufio.NewReader(broker)
	for greeted := !expels; !greeted; { // nothing else arrives before the PONG that ends the greeting
		line, err := lines.ReadString('\n')
		if _, failed := io.WriteString(client, line); err != nil || failed != nil {
			break
		}
		greeted = line == "PONG\r\n"
	}
	if expels {
		_, _ = io.WriteString(client, "-ERR 'Maximum Control Line Exceeded'\r\n")
	}
	_, _ = io.Copy(client, lines)
	_ = client.Close()
	both.Wait()
}
