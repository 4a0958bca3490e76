package integration_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

// connectionScenarios are faults that clients cause on the connections of ingest.
func connectionScenarios() []scenario {
	return []scenario{{name: "slow-connections", traces: 6000, site: fewFiles, strike: (*site).crowd}}
}

// fewFiles returns a site whose ingest may open 600 files.
func fewFiles(t testing.TB) *site {
	s := newSite(t)
	s.ingest.program, s.ingest.args = "/bin/sh", []string{"-c", `ulimit -n 600 && exec "$0"`, s.ingest.program}
	s.check(s.ingest.restart())
	s.ingest.awaitReady()
	return s
}

// crowd holds 1,000 connections with requests that never end, from one address, and reopens
// each when it is closed. Meanwhile traces must become rows, and operators must get answers on
// new connections from another address.
func (s *site) crowd(*rand.Rand) {
	s.t.Helper()
	over, disperse := context.WithCancel(s.t.Context())
	var crowd sync.WaitGroup
	defer func() { disperse(); crowd.Wait() }()
	for range 1000 {
		crowd.Go(func() {
			for over.Err() == nil {
				s.holdConnection(over)
				select {
				case <-time.After(time.Second):
				case <-over.Done():
				}
			}
		})
	}
	operator := http.Client{Timeout: questions.Timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 20 {
		before := s.counts().Traces
		s.await("traces that are published meanwhile", func(c store.Counts) bool { return c.Traces >= before+50 })
		answer, err := operator.Get("http://" + s.ingest.address + "/healthz")
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			s.t.Fatalf("%s, error %v", answer.Status, err)
		}
		_ = answer.Body.Close()
		pipelinetest.Await(s.t, "ingest to be ready", s.ingest.ready)
	}
}

// holdConnection sends the beginning of a request and waits until the connection is closed.
func (s *site) holdConnection(over context.Context) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := dialer.DialContext(over, "tcp", s.ingest.address)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(over, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, "POST /v1/traces HTTP/1.1\r\nHost: "); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}
