package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

// The tail asks the database for each browser, with the rights and filters of that browser, and holds nothing but its
// place: the memory of a tail is that of one answer, and a slow browser is asked for less often. It shows verdicts that
// are some seconds old, by when their rows are stored. Those that are stored later are counted, not shown.
const (
	tailDelay = 3 * time.Second  // so old are the newest verdicts that are shown
	tailEach  = 2 * time.Second  // between two queries, or
	tailShare = 10               // so many times as long as they took
	tailRows  = 100              // of one event; the others are counted
	tailMost  = 8                // browsers at a time
	tailBack  = 10 * time.Minute // how far back a browser that was interrupted continues
	tailStall = 15 * time.Second // a browser that takes nothing for so long is disconnected, and continues when it is back
)

// errBusy means that as many browsers watch as may.
var errBusy = errors.New("as many watch as may")

// tailActions are the filters of the tail by verdict.
var tailActions = []string{"", "problems", "review", "deny"}

// tailPage is the data of tail.html.
type tailPage struct {
	AgentID, Verdict string
	Verdicts         []string
	Events           string // address
	Delay            string
}

// tailOf returns the selection of an address.
func (s *server) tailOf(v *visit) (t rows.Tail, p *tailPage, err error) {
	q := v.URL.Query()
	p = &tailPage{AgentID: q.Get("agent"), Verdict: q.Get("verdict"), Verdicts: tailActions[1:], Delay: fmt.Sprintf("%.0f seconds", tailDelay.Seconds())}
	switch {
	case !slices.Contains(tailActions, p.Verdict):
		return t, p, wrongParameter{"verdict", p.Verdict, oneOf(tailActions[1:])}
	case len(p.AgentID) > schema.MaxIDBytes:
		return t, p, longID("agent", p.AgentID)
	}
	if p.AgentID != "" && !v.Grant.SpeaksFor(p.AgentID) {
		return t, p, missing{"agent of this name"}
	}
	p.Events = "/tail/events?" + url.Values{"agent": {p.AgentID}, "verdict": {p.Verdict}}.Encode()
	t = rows.Tail{Agents: v.agents(), AgentID: p.AgentID, Problems: p.Verdict == "problems"}
	if !t.Problems {
		t.Action = p.Verdict
	}
	return t, p, nil
}

// tail answers with the page on which the script shows what tailEvents sends.
func (s *server) tail(v *visit) (page, error) {
	_, p, err := s.tailOf(v)
	return page{file: "tail.html", title: "Live", data: p}, err
}

// tailEvents answers with server-sent events, until the browser leaves, the login ends, or the console drains.
func (s *server) tailEvents(v *visit) (page, error) {
	t, _, err := s.tailOf(v)
	if err != nil {
		return page{}, err
	}
	t.After = s.now().Add(-tailDelay)
	if last, err := strconv.ParseInt(v.Header.Get("Last-Event-ID"), 10, 64); err == nil { // an interrupted browser continues
		if at := time.Unix(0, last); at.Before(t.After) && at.After(t.After.Add(-tailBack)) {
			t.After = at
		}
	}
	select {
	case s.tails <- struct{}{}:
	default:
		return page{}, errBusy
	}
	return page{serve: func(w http.ResponseWriter, r *http.Request) error {
		defer func() { <-s.tails }()
		follow := &follower{server: s, visit: v, w: w, control: http.NewResponseController(w), tail: t, base: t.After}
		follow.run(r.Context())
		return nil
	}}, nil
}

// follower is the tail of one browser.
type follower struct {
	server  *server
	visit   *visit
	w       http.ResponseWriter
	control *http.ResponseController

	tail    rows.Tail
	base    time.Time // verdicts from then on are counted
	counted uint64    // up to tail.After
}

// news is one event: verdicts, the newest first, and how many more there were.
type news struct {
	Verdicts []rows.Judged `json:"verdicts"`
	LeftOut  uint64        `json:"left_out"` // made in the same time, and too many to show
	Late     uint64        `json:"late"`     // made earlier, and stored only now
}

// run sends news until the end, and says why it ends.
func (f *follower) run(ctx context.Context) {
	_ = f.control.SetReadDeadline(time.Time{}) // that of the request would end it; a recorder of a test has none
	f.w.Header().Set("Content-Type", "text/event-stream")
	f.w.Header().Set("Cache-Control", "no-store, no-transform")
	wait := time.NewTimer(0)
	defer wait.Stop()
	if !f.send("quiet", struct{}{}) { // the answer begins at once
		return
	}
	for {
		select {
		case <-ctx.Done():
			f.send("end", "The console stops, or was restarted.")
			return
		case <-wait.C:
		}
		if err := f.server.stillMay(f.visit); err != nil {
			f.send("end", "Your login has ended, or your token may no longer read.")
			return
		}
		began := f.server.now()
		n, err := f.next(ctx, began)
		sent := true
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			f.server.log.Error("the tail could not be read", "error", err)
			sent = f.send("trouble", "The database did not answer. The tail continues where it was.")
		case len(n.Verdicts) > 0 || n.LeftOut+n.Late > 0:
			sent = f.send("news", n)
		default:
			sent = f.send("quiet", struct{}{}) // also finds out that the browser is gone
		}
		if !sent {
			return
		}
		wait.Reset(max(tailEach, tailShare*f.server.now().Sub(began)))
	}
}

// next reads what was judged since the last time.
func (f *follower) next(ctx context.Context, now time.Time) (n news, err error) {
	f.tail.Until = now.Add(-tailDelay)
	if !f.tail.Until.After(f.tail.After) {
		return n, nil
	}
	counts, err := f.server.rows.CountTail(ctx, f.tail, f.base)
	if err != nil {
		return n, err
	}
	if counts.Fresh > 0 {
		if n.Verdicts, err = f.server.rows.ReadTail(ctx, f.tail, tailRows); err != nil {
			return n, err
		}
	}
	for i := range n.Verdicts {
		one := &n.Verdicts[i]
		one.Address = sessionAddress(one.AgentID, one.Session, one.TraceID)
	}
	shown := uint64(len(n.Verdicts))
	n.LeftOut = max(counts.Fresh, shown) - shown
	n.Late = max(counts.Before, f.counted) - f.counted // a merge removes copies
	f.counted = counts.Before + max(counts.Fresh, shown)
	f.tail.After = f.tail.Until
	if f.tail.After.Sub(f.base) > tailBack { // later ones of that time are not counted
		f.base, f.counted = f.tail.After, 0
	}
	return n, nil
}

// send sends one event, and reports whether the browser took it.
func (f *follower) send(kind string, data any) bool {
	text, err := json.Marshal(data)
	if err != nil {
		f.server.log.Error("an event of the tail could not be written", "error", err)
		return false
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(tailStall))
	_, err = fmt.Fprintf(f.w, "id: %d\nevent: %s\ndata: %s\n\n", f.tail.After.UnixNano(), kind, text)
	return err == nil && f.control.Flush() == nil
}

// stillMay returns an error if the visitor has logged out, or the token may no longer read.
func (s *server) stillMay(v *visit) error {
	_, err := s.admit(v.Request, auth.TracesRead)
	return err
}
