package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/deadletter"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	lettersOfPage = 50
	handleTime    = 20 * time.Second // for all letters of a form
	mostContent   = 64 << 10         // bytes of a letter's content on its page
	mostNote      = 1000             // bytes, as ingest takes
)

// lettersPage is the data of deadletters.html.
type lettersPage struct {
	AgentID, Reason string
	All             bool

	Letters         []rows.Letter
	Sizes           bool // the console may read the bytes
	First           bool
	FirstPage, Next string // addresses

	handling
}

// handling says what the visitor may do with dead letters.
type handling struct {
	MayHandle  bool // mark them
	MayReplay  bool // and publish their bytes again, as far as ingest permits it
	MayPublish bool // the token has the scope for traces
}

func (s *server) handling(v *visit) handling {
	h := handling{MayHandle: s.mayAct(v, auth.LettersWrite), MayPublish: s.permits(v, auth.TracesWrite)}
	h.MayReplay = h.MayHandle && s.letters != nil
	return h
}

// address returns the address of the first page with these filters.
func (p *lettersPage) address() string {
	values := url.Values{}
	for name, value := range map[string]string{"agent": p.AgentID, "reason": p.Reason} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if p.All {
		values.Set("all", "1")
	}
	return "/deadletters?" + values.Encode()
}

// deadLetters answers with the records that were refused, the newest first.
func (s *server) deadLetters(v *visit) (page, error) {
	query := v.URL.Query()
	p := &lettersPage{AgentID: query.Get("agent"), Reason: query.Get("reason"), All: query.Get("all") != "", First: query.Get("after") == "",
		Sizes: s.letters != nil, handling: s.handling(v)}
	switch {
	case len(p.AgentID) > schema.MaxIDBytes:
		return page{}, longID("agent", p.AgentID)
	case len(p.Reason) > schema.MaxIDBytes:
		return page{}, wrongParameter{"reason", p.Reason, "a reason as the list has it, invalid_trace for instance"}
	}
	if p.AgentID != "" && !v.Grant.SpeaksFor(p.AgentID) {
		return page{}, missing{"agent of this name"}
	}
	q := rows.LetterQuery{Agents: v.agents(), AgentID: p.AgentID, Reason: p.Reason, All: p.All, Sizes: p.Sizes, After: rows.ProblemPlace{At: math.MaxInt64}, Limit: lettersOfPage + 1}
	if !p.First {
		after, err := parseListed(query.Get("after"))
		if err != nil {
			return page{}, wrongPlace(query.Get("after"))
		}
		q.After = *after
	}
	var err error
	if p.Letters, err = s.letterRows().ListLetters(v.Context(), q); err != nil {
		return page{}, err
	}
	p.FirstPage = p.address()
	if len(p.Letters) > lettersOfPage {
		p.Letters = p.Letters[:lettersOfPage]
		last := p.Letters[lettersOfPage-1]
		p.Next = p.address() + listedAfter(last.Received, last.Place)
	}
	for i := range p.Letters { // a text may repeat a part of the letter
		l := &p.Letters[i]
		l.TraceID, l.Pointer, l.Fault = deadletter.HideSecrets(l.TraceID), deadletter.HideSecrets(l.Pointer), deadletter.HideSecrets(l.Fault)
	}
	return page{file: "deadletters.html", title: "Dead letters", data: p}, nil
}

// letterRows returns the reader with the most rights on dead letters.
func (s *server) letterRows() *rows.Reader {
	if s.letters != nil {
		return s.letters
	}
	return s.rows
}

// letterPage is the data of deadletter.html.
type letterPage struct {
	Letters []*deadletter.View  // with the same bytes, in order of receipt
	Content *deadletter.Content // nil: it is not shown, for the reason
	Reason  string
	Text    string // of the content
	Cut     bool
	Digest  string
	handling
}

// lettersOf returns the letters of a digest that the visitor may see.
func (s *server) lettersOf(v *visit, text string, raw bool) (letters []store.MarkedLetter, err error) {
	unknown := missing{"dead letter with this SHA-256"}
	var digest schema.Digest
	if err := digest.UnmarshalText([]byte(text)); err != nil {
		return nil, unknown
	}
	letters, err = s.letterRows().LettersOf(v.Context(), v.agents(), digest.String(), raw)
	if err == nil && len(letters) == 0 {
		err = unknown
	}
	return letters, err
}

// deadLetter answers with one record that was refused. Its bytes are for those who may handle it.
func (s *server) deadLetter(v *visit) (page, error) {
	p := &letterPage{handling: s.handling(v)}
	switch {
	case s.letters == nil:
		p.Reason = "This console may not read the bytes of dead letters: letters_dsn of the console names a database user who may."
	case !s.permits(v, auth.LettersWrite):
		p.Reason = "The bytes are for tokens with the scope dead-letters:write."
	}
	letters, err := s.lettersOf(v, v.URL.Query().Get("sha256"), p.Reason == "")
	if err != nil {
		return page{}, err
	}
	for i := range letters {
		p.Letters = append(p.Letters, deadletter.ViewOf(&letters[i]))
	}
	p.Digest = p.Letters[0].Digest.String()
	if p.Reason == "" {
		p.Content = deadletter.ContentOf(&letters[0])
		p.Reason, p.Text = p.Content.Hidden, string(p.Content.Record)
		var indented bytes.Buffer
		if len(p.Text) <= mostContent && json.Indent(&indented, p.Content.Record, "", "  ") == nil {
			p.Text = indented.String()
		}
		if p.Cut = len(p.Text) > mostContent; p.Cut {
			p.Text = strings.ToValidUTF8(p.Text[:mostContent], "")
		}
	}
	return page{file: "deadletter.html", title: "Dead letter " + p.Digest[:12], data: p}, nil
}

// handleLetters does with the chosen letters what plumbline dlq replay or dlq resolve does, one after the other.
func (s *server) handleLetters(v *visit) (page, error) {
	ingest, err := s.publisher(v)
	if err != nil {
		return page{}, err
	}
	replays := v.PostForm.Get("do") == "replay"
	handle, title := deadletter.Resolve, "Resolution of dead letters"
	if replays {
		handle, title = deadletter.Replay, "Replay of dead letters"
	}
	digests, note := v.PostForm["sha256"], v.PostForm.Get("note")
	switch {
	case !replays && v.PostForm.Get("do") != "resolve", len(digests) > lettersOfPage:
		return page{}, missing{"such form on the console's pages"}
	case len(note) > mostNote: // the browser counts letters
		return page{}, wrongParameter{"note", note, fmt.Sprintf("a text of %d bytes at most; a letter beyond those of English has several", mostNote)}
	case replays && s.letters == nil:
		return page{}, errLooksOnly
	}
	ctx, cancel := context.WithTimeout(v.Context(), handleTime)
	defer cancel()
	done := donePage{Back: "/deadletters", Where: "Dead letters", Said: "Each step is in the operator's ledger. The list shows a mark a moment after it was made."}
	if len(digests) == 0 {
		done.Said = "No dead letter was chosen, so nothing was done."
	}
	for i, digest := range digests {
		if slices.Contains(digests[:i], digest) {
			continue // the same bytes were refused several times
		}
		one := result{Name: digest, Address: "/deadletter?" + url.Values{"sha256": {digest}}.Encode()}
		one.Done, one.Said = s.handleLetter(ctx, v, ingest, digest, note, replays, handle)
		done.Results = append(done.Results, one)
	}
	return page{file: "done.html", title: title, data: done}, nil
}

// handler is deadletter.Replay or deadletter.Resolve.
type handler func(context.Context, deadletter.Ingest, *store.MarkedLetter, string) (*deadletter.Handled, error)

// handleLetter handles one letter, and says what became of it.
func (s *server) handleLetter(ctx context.Context, v *visit, ingest *client.Publisher, digest, note string, raw bool, handle handler) (good bool, said string) {
	if ctx.Err() != nil {
		return false, "There was no time left for it: repeat it."
	}
	letters, err := s.lettersOf(v, digest, raw)
	if unknown, ok := errors.AsType[missing](err); ok {
		return false, s.absence(unknown)
	}
	if err != nil {
		s.log.Error("a dead letter could not be read", "error", err)
		return false, "The database did not answer; nothing was done with it."
	}
	handled, err := handle(ctx, ingest, &letters[0], note)
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return false, "Ingest refused it: " + problem.Message + "."
	}
	switch {
	case err != nil:
		return false, fmt.Sprintf("Ingest gave no answer: %v. Repeating it is safe.", err)
	case handled.Message != "":
		return false, "Not replayed: " + handled.Message + "."
	case handled.Outcome == nil:
		return true, handled.Mark
	}
	said = handled.Outcome.Status
	for _, fault := range handled.Outcome.Faults {
		said += fmt.Sprintf("; %s %s", fault.Pointer, fault.Message)
	}
	return handled.Mark != "", deadletter.HideSecrets(schema.Clip(said, 2000))
}
