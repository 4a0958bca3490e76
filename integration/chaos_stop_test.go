package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// These constants are how long processes are stopped, at least.
const (
	processStopped = 30 * time.Second
	// engineStopped is longer than an insert may take (2 minutes), and the two attempts to
	// connect after it (10 seconds each). So inserts give up, and their batches must be stored later.
	engineStopped = 150 * time.Second
)

// stopScenarios stop one process with SIGSTOP. Its connections stay open, and it answers nothing.
// Each scenario requires what must happen meanwhile, or when the process continues.
func stopScenarios() []scenario {
	return []scenario{
		{name: "stop-ingest", traces: 6000, strike: (*site).stopIngest, then: (*site).checkImpatient},
		{name: "stop-verifier", traces: 6000, strike: (*site).stopVerifier},
		{name: "stop-drift", traces: 6000, strike: (*site).stopDrift},
		{name: "stop-exporter", traces: 6000, strike: (*site).stopExporter},
		{name: "stop-broker", traces: 6000, strike: func(s *site, _ *rand.Rand) { s.stop("broker", processStopped) }},
		{name: "stop-engine", traces: 6000, strike: func(s *site, _ *rand.Rand) { s.stop("engine", engineStopped) }},
	}
}

// stop stops a process with SIGSTOP for a time.
func (s *site) stop(name string, during time.Duration) {
	s.t.Helper()
	resume := s.suspend(name)
	time.Sleep(during)
	resume()
}

// suspend stops a process with SIGSTOP until the returned function is called.
func (s *site) suspend(name string) (resume func()) {
	s.t.Helper()
	pid := 0
	if server := s.server(name); server != nil {
		pid = server()
	} else {
		pid = s.named(name).cmd.Process.Pid
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(fmt.Errorf("stop %s: %w", name, err))
	}
	return func() { s.check(syscall.Kill(pid, syscall.SIGCONT)) }
}

// impatient is the agent whose publisher does not wait for a stopped ingest.
const impatient = "impatient"

// stopIngest stops ingest while a publisher waits for five seconds, gives up, and sends its traces
// again on another connection. The kernel takes the requests meanwhile, so ingest reads each of
// them when it continues.
func (s *site) stopIngest(*rand.Rand) {
	s.t.Helper()
	g := s.guest(impatient, 100)
	g.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resume := s.suspend("ingest")
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		s.deliverGuest(g)
	}()
	time.Sleep(processStopped)
	resume()
	<-delivered
}

// checkImpatient requires that the stream holds each trace once, however often it was sent, and the
// request to end their session.
func (s *site) checkImpatient() {
	s.t.Helper()
	if n := s.messagesOf(impatient); n != 100+1 {
		s.t.Errorf("the stream holds %d messages of 100 traces and one request to end a session", n)
	}
}

// messagesOf counts the messages of an agent in stream TRACES.
func (s *site) messagesOf(agent string) (n int) {
	s.t.Helper()
	traces, err := s.jetStream().Stream(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := traces.Info(s.t.Context(), jetstream.WithSubjectFilter("traces.*."+subject.Token(agent)))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, messages := range info.State.Subjects {
		n += int(messages)
	}
	return n
}

// stopVerifier stops the verifier, and starts another one. The other one must receive everything
// that the broker had delivered to the stopped one, while that is still stopped.
func (s *site) stopVerifier(*rand.Rand) {
	s.t.Helper()
	resume, began := s.suspend("verifier"), time.Now()
	s.service("verifier", "PLUMBLINE_BATCH_AGE=50ms").awaitReady()
	before := s.messages()
	pipelinetest.Await(s.t, "messages for both verifiers", func() bool { return s.messages() >= before+2*chunk })
	state, err := s.client.StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	pipelinetest.Await(s.t, "the other verifier to acknowledge what the stopped one holds", func() bool {
		progress, err := s.client.ConsumerProgress(s.t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor >= state.LastSequence
	})
	time.Sleep(processStopped - time.Since(began))
	resume()
}

// stopDrift stops drift, and starts another one. The other one must take the partitions over, while the
// first one is still stopped, and measure.
func (s *site) stopDrift(*rand.Rand) {
	s.t.Helper()
	resume, began := s.suspend("drift"), time.Now()
	other := s.service("drift", "PLUMBLINE_BATCH_AGE=50ms")
	other.awaitReady()
	s.awaitOwned(other, subject.Partitions)
	before := s.counts().DriftPoints
	s.await("points that the other drift measures", func(c store.Counts) bool { return c.DriftPoints >= before+2*chunk })
	time.Sleep(processStopped - time.Since(began))
	resume()
}

// stopExporter stops the exporter. Another exporter on the same directory does not become ready, because
// the stopped one has the lease. Once the operator has removed the lease, it takes that, and waits for the lock
// on the data directory. The stopped one must end when it continues, because another one has the lease, and
// that one then works.
func (s *site) stopExporter(*rand.Rand) {
	s.t.Helper()
	resume, began := s.suspend("exporter"), time.Now()
	other := s.service("exporter", "PLUMBLINE_EVERY=50ms", "PLUMBLINE_DATA_DIR="+s.place.dataDir)
	waitsFor := func(what string) {
		pipelinetest.Await(s.t, "an exporter that waits: "+what, func() bool { return strings.Contains(other.readiness(), what) })
	}
	waitsFor("keeper")
	s.removeLease("exporter")
	waitsFor("still uses the data directory")
	time.Sleep(processStopped - time.Since(began))
	resume()
	s.awaitRefusal(s.exporter)
	other.awaitReady()
	s.exporter = other
}

// awaitRefusal waits until a service ends with an error, as one without the lease must.
func (s *site) awaitRefusal(refused *service) {
	s.t.Helper()
	pipelinetest.Await(s.t, refused.name+" to end without the lease", refused.ended)
	if refused.cmd.ProcessState.Success() {
		s.t.Errorf("%s ended without an error", refused.name)
	}
}
