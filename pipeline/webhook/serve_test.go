package webhook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
)

const (
	critical = `{"violations":[{"type":"FORBIDDEN_ACTION","severity":"CRITICAL"},{"severity":"MEDIUM"}],"findings":[]}`
	medium   = `{"alert_id":"x","finding":{"type":"ACTION_LOOP","severity":"MEDIUM"}}`
	drifting = `{"alert_id":"y","state":"opened","summary":"a < b"}`
)

// Alerts arrive once each, in the order of the stream, signed, in the documented form.
func TestAlertsArriveInOrder(t *testing.T) {
	s, r := newSite(t), newReceiver(t, nil)
	e := s.endpoint("all", r.URL)
	s.raise(subject.AlertDrift, 99, drifting) // before the endpoint was known
	s.run(e)
	var want []string
	for n := range 10 {
		want = append(want, s.raise(subject.AlertViolation, n, critical), s.raise(subject.AlertFinding, n, medium), s.raise(subject.AlertDrift, n, drifting))
	}
	r.await(t, len(want))
	if got := r.ids(); !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	secrets, err := ReadSecrets(e.SecretFile)
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{`"severity":"CRITICAL","data":` + critical, `"severity":"MEDIUM","data":` + medium, `"data":` + drifting}
	types := []string{"alert.violation", "alert.finding", "alert.drift"}
	for i, m := range r.messages() {
		if err := Verify(m.header, secrets, time.Now(), m.body); err != nil {
			t.Errorf("%s: %v", m.id, err)
		}
		var read body
		if err := json.Unmarshal(m.body, &read); err != nil {
			t.Fatal(err)
		}
		whole := fmt.Sprintf(`{"type":%q,"timestamp":%q,"tenant":"default",%s}`, types[i%3], read.Timestamp.Format(time.RFC3339Nano), bodies[i%3])
		if string(m.body) != whole || time.Since(read.Timestamp).Abs() > time.Minute {
			t.Errorf("body %s, want %s", m.body, whole)
		}
		if m.header.Get("Content-Type") != "application/json" || m.header.Get("User-Agent") != "plumbline/test" {
			t.Errorf("headers %v", m.header)
		}
	}
	pipelinetest.Await(t, "the metric", func() bool {
		return s.metric("plumbline_webhook_alerts_total", "all", "delivered") == float64(len(want))
	})
}

// An attempt that fails is repeated with the same id and body until the receiver takes the alert, and no
// later alert overtakes it. Retry-After is respected. A redirect is not followed.
func TestAttemptsAreRepeated(t *testing.T) {
	elsewhere := newReceiver(t, nil)
	answers := []func(w http.ResponseWriter, r *http.Request){
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, // until the timeout
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, // the connection is cut
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter, _ *http.Request) { // an answer without an end is cut off, and is good
			for w.(http.Flusher) != nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		},
	}
	s := newSite(t)
	r := newReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < len(answers) {
			answers[n](w, r)
		}
	})
	e := s.endpoint("shaky", r.URL+"/secret-path")
	e.Timeout = 300 * time.Millisecond
	s.run(e)
	first, second := s.raise(subject.AlertViolation, 1, critical), s.raise(subject.AlertDrift, 2, drifting)
	r.await(t, len(answers)+1)
	got := r.messages()
	for i, m := range got[:len(answers)] {
		if m.id != first || !bytes.Equal(m.body, got[0].body) {
			t.Errorf("request %d is %s %s", i, m.id, m.body)
		}
	}
	if got[len(answers)].id != second {
		t.Errorf("then %s, want %s", got[len(answers)].id, second)
	}
	if waited := got[5].at.Sub(got[4].at); waited < time.Second {
		t.Errorf("repeated %s after Retry-After: 1", waited)
	}
	if n := len(elsewhere.messages()); n > 0 {
		t.Errorf("%d requests were redirected", n)
	}
	if refusals, others := s.metric("plumbline_webhook_failures_total", "shaky", "refused"), s.metric("plumbline_webhook_failures_total", "shaky", "unavailable"); refusals != 1 || others != 4 {
		t.Errorf("%v refusals and %v other failures, want 1 and 4", refusals, others)
	}
	secret, _ := os.ReadFile(e.SecretFile)
	if text := s.log.String(); strings.Contains(text, "secret-path") || strings.Contains(text, string(secret)) || strings.Contains(text, "FORBIDDEN_ACTION") || !strings.Contains(text, "retrying") {
		t.Errorf("the log is %s", text)
	}
}

// Why an attempt failed is logged without the URL and without what the receiver sent: one that sends the
// request back would else put both into the log.
func TestReasonsHaveNoContent(t *testing.T) {
	read := func(conn net.Conn) string {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return ""
		}
		body, _ := io.ReadAll(request.Body)
		return string(body)
	}
	echoing := func(conn net.Conn) { _, _ = io.WriteString(conn, read(conn)) }
	heading := func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nSECRET\r\n\r\n") }
	dropping := func(net.Conn) {}
	const ended, invalid = "the connection ended without an answer", "no valid answer"
	s := newSite(t)
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		want  []string // one of these
	}{
		{"echoing", echoing, []string{invalid}},
		{"heading", func(conn net.Conn) { read(conn); heading(conn) }, []string{invalid}},
		{"dropping", func(conn net.Conn) { read(conn); dropping(conn) }, []string{ended}},
		// Without having read the request: the client's system may say first that the connection was reset.
		{"heading-early", heading, []string{invalid, "connection reset by peer", "broken pipe"}},
		{"dropping-early", dropping, []string{ended, "connection reset by peer", "broken pipe"}},
	} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				c.serve(conn)
				_ = conn.Close()
			}
		}()
		e := s.endpoint(c.name, "http://"+listener.Addr().String()+"/SECRET")
		got := send(t.Context(), transport.Outbound(nil), &e, []Secret{NewSecret()}, "test", &alert{id: "a", body: []byte(`{"SECRET":1}`)})
		wanted := slices.ContainsFunc(c.want, func(want string) bool { return strings.HasSuffix(got.reason, want) })
		if got.outcome != unavailable || !wanted || strings.Contains(got.reason, "SECRET") {
			t.Errorf("%s: %s %q, want %q", c.name, got.outcome, got.reason, c.want)
		}
		_ = listener.Close()
		got = send(t.Context(), transport.Outbound(nil), &e, []Secret{NewSecret()}, "test", &alert{id: "a"})
		if got.outcome != unavailable || !strings.Contains(got.reason, "connection refused") || strings.Contains(got.reason, "SECRET") {
			t.Errorf("%s, closed: %s %q", c.name, got.outcome, got.reason)
		}
	}
}

// A consumer that is deleted while the service runs is made again, and the log says that alerts are missing.
func TestDeletedConsumerIsSaid(t *testing.T) {
	s, r := newSite(t), newReceiver(t, nil)
	s.run(s.endpoint("deleted", r.URL))
	s.raise(subject.AlertDrift, 1, drifting)
	r.await(t, 1)
	js := s.broker.JetStream()
	if err := js.DeleteConsumer(t.Context(), stream.Alerts, stream.WebhookConsumer("deleted")); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "the log to say so", func() bool { return strings.Contains(s.log.String(), "the endpoint's consumer was deleted") })
	s.raise(subject.AlertDrift, 2, drifting)
	r.await(t, 2)
}

// An alert that the receiver refuses, or that becomes too old, is given up: the ledger, the metric and the
// log say so, and the next alert follows.
func TestAlertsAreGivenUp(t *testing.T) {
	s := newSite(t)
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	refusing := s.endpoint("refusing", r.URL)
	refusing.Attempts = 3
	away := s.endpoint("away", "http://127.0.0.1:1/")
	away.GiveUpAfter = 200 * time.Millisecond
	s.run(refusing, away)
	first, second := s.raise(subject.AlertViolation, 1, critical), s.raise(subject.AlertDrift, 2, drifting)
	broken := s.raise(subject.AlertDrift, 3, "not JSON")
	third := s.raise(subject.AlertDrift, 4, drifting)
	r.await(t, 5)
	if got, want := r.ids(), []string{first, first, first, second, third}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	pipelinetest.Await(t, "all four to be given up for the endpoint that is away", func() bool {
		return s.metric("plumbline_webhook_alerts_total", "away", "given_up") == 4 && s.metric("plumbline_webhook_alerts_total", "refusing", "given_up") == 2
	})
	recorded := map[string]int{}
	for _, m := range s.broker.Read(stream.Ledger, "", 1+2+4) {
		var event struct {
			Kind, Endpoint, Reason string
			WebhookID              string `json:"webhook_id"`
		}
		if err := json.Unmarshal(m.Data, &event); err != nil {
			t.Fatal(err)
		}
		if event.Kind == "webhook_given_up" {
			recorded[event.Endpoint+" "+event.WebhookID+" "+event.Reason]++
		}
	}
	for _, want := range []string{
		"refusing " + first + " refused", "refusing " + broken + " unreadable",
		"away " + first + " unavailable", "away " + second + " unavailable", "away " + broken + " unreadable", "away " + third + " unavailable",
	} {
		if recorded[want] != 1 {
			t.Errorf("the ledger has %v, and not once %q", recorded, want)
		}
	}
	if !strings.Contains(s.log.String(), "an alert was given up") {
		t.Error("the log does not say that alerts were given up")
	}
}

// 410 ends an endpoint until the next start, which loses no alert.
func TestGoneDisables(t *testing.T) {
	s := newSite(t)
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			w.WriteHeader(http.StatusGone)
		}
	})
	e := s.endpoint("leaving", r.URL)
	stage := s.run(e)
	first, second := s.raise(subject.AlertViolation, 1, critical), s.raise(subject.AlertDrift, 2, drifting)
	pipelinetest.Await(t, "the metric", func() bool { return s.metric("plumbline_webhook_disabled", "leaving", "") == 1 })
	time.Sleep(200 * time.Millisecond) // ten first waits: an endpoint that is not disabled would be asked again
	if got := r.ids(); !slices.Equal(got, []string{first}) {
		t.Errorf("received %v", got)
	}
	if text := s.log.String(); strings.Contains(text, "retrying") || !strings.Contains(text, "410 Gone: it gets no more alerts") {
		t.Errorf("the log says:\n%s", text)
	}
	stage.Stop(t)
	s.run(e)
	r.await(t, 3)
	if got, want := r.ids(), []string{first, first, second}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}

// An endpoint gets the types and severities that its filter names. What is away delays no other endpoint.
func TestFiltersAndSeparateEndpoints(t *testing.T) {
	s := newSite(t)
	hangs := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	drifts, grave := newReceiver(t, nil), newReceiver(t, nil)
	onlyDrift, onlyGrave := s.endpoint("drifts", drifts.URL), s.endpoint("grave", grave.URL)
	onlyDrift.Types = []subject.AlertKind{subject.AlertDrift}
	onlyGrave.Severity, onlyGrave.Types = "HIGH", []subject.AlertKind{subject.AlertViolation, subject.AlertFinding}
	s.run(s.endpoint("hanging", hangs.URL), onlyDrift, onlyGrave)
	var wantDrifts, wantGrave []string
	began := time.Now()
	for n := range 5 {
		wantGrave = append(wantGrave, s.raise(subject.AlertViolation, n, critical))
		s.raise(subject.AlertFinding, n, medium)
		wantDrifts = append(wantDrifts, s.raise(subject.AlertDrift, n, drifting))
	}
	unknown := s.raise(subject.AlertFinding, 9, `{"findings":"of a later version"}`) // rather sent than left out
	wantGrave = append(wantGrave, unknown)
	drifts.await(t, len(wantDrifts))
	grave.await(t, len(wantGrave))
	if took := time.Since(began); took > 14*time.Second {
		t.Errorf("took %s while one endpoint was hanging for 15 s", took)
	}
	if !slices.Equal(drifts.ids(), wantDrifts) || !slices.Equal(grave.ids(), wantGrave) {
		t.Errorf("received %v and %v, want %v and %v", drifts.ids(), grave.ids(), wantDrifts, wantGrave)
	}
	pipelinetest.Await(t, "the metric", func() bool {
		return s.metric("plumbline_webhook_alerts_total", "drifts", "filtered") == 11 && s.metric("plumbline_webhook_alerts_total", "grave", "filtered") == 10
	})
	if n := len(hangs.messages()); n != 1 {
		t.Errorf("the hanging endpoint got %d requests, want 1", n)
	}
	hangs.CloseClientConnections() // the request ends before the service has to wait for it
}

// While a secret file has two secrets, both verify a message; a restart is not needed.
func TestSecretsAreRotated(t *testing.T) {
	s, r := newSite(t), newReceiver(t, nil)
	e := s.endpoint("rotating", r.URL)
	old, next := NewSecret(), NewSecret()
	s.write(e.SecretFile, old.Text())
	s.run(e)
	verified := func(n int) (by string) {
		t.Helper()
		s.raise(subject.AlertDrift, n, drifting)
		r.await(t, n+1)
		m := r.messages()[n]
		for name, secret := range map[string]Secret{"old": old, "next": next} {
			if Verify(m.header, []Secret{secret}, time.Now(), m.body) == nil {
				by = strings.TrimSpace(name + " " + by)
			}
		}
		if by == "next old" {
			by = "old next"
		}
		return by
	}
	for n, c := range []struct{ file, by string }{
		{old.Text(), "old"}, {"# rotated\n" + next.Text() + "\n" + old.Text() + "\n", "old next"}, {"broken", "old next"}, {next.Text(), "next"},
	} {
		s.write(e.SecretFile, c.file)
		time.Sleep(1100 * time.Millisecond) // reload.Recheck
		if by := verified(n); by != c.by {
			t.Errorf("message %d is signed by %q, want %q", n, by, c.by)
		}
	}
}

// A killed process and a killed broker lose no alert and change no order. What was on its way may come twice.
func TestKilledProcessLosesNothing(t *testing.T) {
	s := newSite(t)
	var slow sync.WaitGroup
	slow.Add(1)
	r := newReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 3 {
			slow.Done()
			<-r.Context().Done() // until the process is killed
		}
	})
	e := s.endpoint("killed", r.URL)
	list := filepath.Join(s.dir, "webhooks.yaml")
	s.write(list, fmt.Sprintf("endpoints: [{name: killed, url: %q, secret_file: %q}]", e.URL, e.SecretFile))
	start := func() *exec.Cmd {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), asService+"="+list, "PLUMBLINE_NATS_URL="+s.broker.URL(), "PLUMBLINE_NATS_MONITOR_URL="+s.broker.MonitorURL())
		process.Stdout, process.Stderr = t.Output(), t.Output()
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
		return process
	}
	process := start()
	pipelinetest.Await(t, "the endpoint's consumer", func() bool {
		_, err := s.client.Backlog(t.Context(), stream.Alerts, stream.WebhookConsumer("killed"))
		return err == nil
	})
	var want []string
	for n := range 8 {
		want = append(want, s.raise(subject.AlertViolation, n, critical))
	}
	slow.Wait()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	s.broker.Restart()
	want = append(want, s.raise(subject.AlertDrift, 100, drifting))
	start()
	pipelinetest.Await(t, "the last alert", func() bool { return slices.Contains(r.ids(), want[len(want)-1]) })
	if got := slices.Compact(r.ids()); !slices.Equal(got, want) {
		t.Errorf("received %v, want %v in this order", got, want)
	}
}
