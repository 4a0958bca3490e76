package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
)

// event is a server-sent event.
type event struct {
	id, kind string
	data     string
}

// watch opens the tail, and returns its events and what closes it.
func (v *visitor) watch(path string, headers ...string) (events <-chan event, stop func()) {
	v.t.Helper()
	ctx, stop := context.WithCancel(v.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	all := make(chan event, 100)
	go func() {
		defer close(all)
		answer, err := v.client.Do(request)
		if err != nil {
			all <- event{data: err.Error()}
			return
		}
		defer func() { _ = answer.Body.Close() }()
		if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
			all <- event{data: fmt.Sprint(answer.StatusCode, " ", kind)}
			return
		}
		var e event
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				all <- e
			}
		}
	}()
	if first := <-all; first.kind != "quiet" {
		v.t.Fatalf("%s begins with %+v", path, first)
	}
	return all, stop
}

// await returns the sum of news until they have what is wanted, and the id of the last event.
func await(t *testing.T, events <-chan event, wanted func(news) bool) (sum news, id string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("the tail ended with %+v", sum)
			}
			if e.kind == "news" {
				var n news
				if err := json.Unmarshal([]byte(e.data), &n); err != nil {
					t.Fatal(err)
				}
				sum.Verdicts, sum.LeftOut, sum.Late = append(sum.Verdicts, n.Verdicts...), sum.LeftOut+n.LeftOut, sum.Late+n.Late
			}
			if id = e.id; wanted(sum) {
				return sum, id
			}
		case <-deadline:
			t.Fatalf("only %+v", sum)
		}
	}
}

// The tail has each verdict of the visitor's agents once, counts what it leaves out and what is stored late, and goes on
// where it was interrupted.
func TestTail(t *testing.T) {
	r := start(t, nil, "shop-token shop.* traces:read")
	v := r.visitor("shop-token")
	v.page("/tail?agent=shop.a", `data-events="/tail/events?agent=shop.a&amp;verdict="`, "<noscript>")
	events, stop := v.watch("/tail/events")
	const soon = 10 * time.Second // longer than an insert takes: a row that is stored later than tailDelay is late
	first := time.Now().Add(soon)
	r.put(r.rows, fact{agent: "shop.a", trace: "t-1", session: "s", at: first}, fact{agent: "shop.b", trace: hostile, session: "s", at: first, violations: []string{"FORBIDDEN_ACTION"}}, fact{agent: "other", trace: "t-3", session: "s"})
	r.put(r.tenant("neighbour"), fact{agent: "shop.a", trace: "t-4", session: "s"})
	sum, _ := await(t, events, func(n news) bool { return len(n.Verdicts) == 2 })
	for _, one := range sum.Verdicts {
		if one.AgentID != "shop.a" && one.AgentID != "shop.b" || !strings.HasPrefix(one.Address, "/session?agent="+one.AgentID) || one.AgentID == "shop.b" && (len(one.Types) != 1 || one.TraceID != hostile) {
			t.Errorf("%+v", one)
		}
	}
	r.put(r.rows, fact{agent: "shop.a", trace: "late", session: "s", at: first.Add(-time.Hour)}) // before the tail began: nobody waits for it
	var many []fact
	next := time.Now().Add(soon)
	for i := range tailRows + 20 {
		many = append(many, fact{agent: "shop.a", trace: fmt.Sprint("m-", i), session: "s", at: next})
	}
	r.put(r.rows, many...)
	sum, _ = await(t, events, func(n news) bool { return len(n.Verdicts)+int(n.LeftOut) >= len(many) })
	if len(sum.Verdicts) != tailRows || sum.LeftOut != 20 || sum.Late != 0 {
		t.Errorf("%d verdicts, %d left out, %d late, of %d", len(sum.Verdicts), sum.LeftOut, sum.Late, len(many))
	}
	r.put(r.rows, fact{agent: "shop.a", trace: "late-2", session: "s", at: first}) // since the tail began, and stored only now
	sum, _ = await(t, events, func(n news) bool { return n.Late > 0 })
	if sum.Late != 1 || len(sum.Verdicts) != 0 {
		t.Errorf("late: %+v", sum)
	}
	r.put(r.rows, fact{agent: "shop.a", trace: "not judged", session: "s", at: time.Now().Add(soon), unknown: true})
	sum, id := await(t, events, func(n news) bool { return len(n.Verdicts) > 0 })
	if len(sum.Verdicts) != 1 || sum.Verdicts[0].Said != "card unknown" {
		t.Errorf("a trace of an unknown card: %+v", sum)
	}
	stop()
	r.put(r.rows, fact{agent: "shop.a", trace: "meanwhile", session: "s"}, fact{agent: "shop.a", trace: "denied", session: "s", violations: []string{"FORBIDDEN_ACTION"}})
	time.Sleep(tailDelay + time.Second)
	events, stop = v.watch("/tail/events?verdict=problems", "Last-Event-ID", id)
	defer stop()
	if sum, _ := await(t, events, func(n news) bool { return len(n.Verdicts) > 0 }); len(sum.Verdicts) != 1 || sum.Verdicts[0].TraceID != "denied" {
		t.Errorf("after the interruption: %+v", sum)
	}
	for path, want := range map[string]int{"/tail/events?agent=other": http.StatusNotFound, "/tail?verdict=x": http.StatusBadRequest} {
		if code, text := v.get(path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// The tail ends with its token, and no more browsers watch than may.
func TestEndOfTheTail(t *testing.T) {
	r := start(t, nil, "reader-token * traces:read")
	v := r.visitor("reader-token")
	var all []<-chan event
	for range tailMost {
		events, stop := v.watch("/tail/events")
		defer stop()
		all = append(all, events)
	}
	if code, text := v.get("/tail/events"); code != http.StatusServiceUnavailable || !strings.Contains(text, "Too many watch") {
		t.Errorf("%d %s", code, text)
	}
	if err := (auth.TokenFile{Path: r.tokens}).Revoke(t.Context(), "entry-0"); err != nil {
		t.Fatal(err)
	}
	for _, events := range all {
		last := event{}
		for e := range events {
			last = e
		}
		if last.kind != "end" || !strings.Contains(last.data, "token may no longer read") {
			t.Errorf("the last event is %+v", last)
		}
	}
	for len(r.server.tails) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// When the console stops, the live page ends and says so, and the console does not wait longer for it.
func TestTailEndsWithTheConsole(t *testing.T) {
	r := start(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := *r.server.cfg
	env := service.NewEnv("console", "test", r.server.log, obs.NewRegistry("test"), new(obs.Health))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- ServeOn(ctx, listener, &cfg, env) }()
	v := r.visitor("")
	v.url = "http://" + listener.Addr().String()
	var all []<-chan event
	for range 2 {
		events, leave := v.watch("/tail/events")
		defer leave()
		all = append(all, events)
	}
	began := time.Now()
	stop()
	for _, events := range all {
		last := event{}
		for e := range events {
			last = e
		}
		if last.kind != "end" || !strings.Contains(last.data, "The console stops") {
			t.Errorf("the last event is %+v", last)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= env.DrainBudget {
		t.Errorf("the console stopped after %s", took)
	}
}
