package session

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// How many equal acts in a row are a loop. ADR 9 has the measurement on recorded sessions.
const (
	Repeats     = 3  // of writes, transfers and refusals
	ManyRepeats = 10 // of bounded executions, mostly reads, and of acts with a reason to repeat them
)

// kind is what an act does.
type kind uint8

const (
	noLoop   kind = iota // it can be no part of a loop; like any other act it ends the run before it
	bounded              // an execution that the agent may do on its own, mostly a read
	write                // any other execution
	transfer             // an escalation
	refusal              // the agent denied the action
)

// Act is what one trace contributes to the search for loops. It aliases nothing of the trace.
type Act struct {
	session uint64 // of the session's id
	same    uint64 // equal for equal acts
	asked   uint64 // of a transfer: of the escalation's id; 0 without one
	place   int64
	name    string // of the action
	kind    kind
	excused bool // the trace shows a reason to do the same again
	last    bool // the trace ends its session
}

// Acts reduces traces to acts in reused memory. It belongs to one goroutine.
type Acts struct {
	text       []byte
	parameters []schema.Member
	names      map[string]string // copies of names; at most maxNames
}

// maxNames is how many names of actions are kept. Agents have few; beyond the limit a name is
// copied again.
const maxNames = 1024

// maxText is how many bytes are kept from one trace to the next.
const maxText = 64 << 10

// Of returns the act of a trace. Acts are equal if their type, name, target and parameters are;
// if there are no parameters, the inputs of the execution are compared instead. An act that
// shows none of these is equal to no other. Neither is an act without a session id: what an agent
// does in a day is no session.
func (r *Acts) Of(t *schema.Trace) Act {
	a := &t.Action
	act := Act{place: t.Timestamp.UnixNano(), last: t.Context.SessionEnd, excused: t.Context.Execution.Error != ""}
	if t.Context.HasSequenceNumber {
		act.place = int64(t.Context.SequenceNumber)
	}
	switch {
	case a.Type == schema.ActionExecute && a.Category == schema.CategoryBounded:
		act.kind = bounded
	case a.Type == schema.ActionExecute:
		act.kind = write
	case a.Type == schema.ActionEscalate:
		act.kind = transfer
		act.excused = act.excused || t.Escalation.Reports(schema.EscalationTimeout) || denied(&t.Escalation) || approved(&t.Escalation)
	case a.Type == schema.ActionDeny:
		act.kind = refusal
	}
	inputs := t.Context.Execution.Inputs
	shown := a.Target != schema.Target{} || len(a.Parameters) > 0 || len(inputs) > 0
	if t.Context.SessionID == "" || !shown {
		act.kind = noLoop
	}
	act.session = r.digest(t.Context.SessionID)
	if act.kind == noLoop {
		return act
	}
	act.name = r.name(a.Name)
	if id := t.Escalation.EscalationID; act.kind == transfer && id != "" {
		act.asked = r.digest(id)
	}
	r.parameters = append(r.parameters[:0], a.Parameters...)
	slices.SortStableFunc(r.parameters, func(a, b schema.Member) int { return strings.Compare(a.Name, b.Name) })
	text := append(r.text[:0], byte(act.kind))
	for _, part := range [...]string{a.Name, a.Target.Type, a.Target.Identifier} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	for _, p := range r.parameters {
		text = append(binary.AppendUvarint(text, uint64(len(p.Name))), p.Name...)
		text = append(binary.AppendUvarint(text, uint64(len(p.Value))), p.Value...)
	}
	if len(r.parameters) == 0 {
		text = append(text, inputs...)
	}
	act.same = r.sum(text)
	clear(r.parameters) // they alias the trace
	return act
}

func (r *Acts) digest(id string) uint64 { return r.sum(append(r.text[:0], id...)) }

func (r *Acts) sum(text []byte) uint64 {
	if r.text = text; cap(text) > maxText {
		r.text = nil
	}
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

func (r *Acts) name(name string) string {
	if kept, ok := r.names[name]; ok {
		return kept
	}
	if r.names == nil || len(r.names) >= maxNames {
		r.names = map[string]string{}
	}
	name = strings.Clone(name)
	r.names[name] = name
	return name
}

// run is a run of equal acts in a row. The zero run is before the first act.
//
// Acts of the same place have no order among themselves. So a place with different acts ends the
// run before it and belongs to no run, whichever of its acts arrives first.
type run struct {
	Kind      kind   `json:"kind,omitempty"`
	Mixed     bool   `json:"mixed,omitempty"` // the newest place has different acts
	Same      uint64 `json:"same,omitempty"`
	Asked     uint64 `json:"asked,omitempty"` // by the newest act
	Place     int64  `json:"place,omitempty"` // the newest
	Count     uint32 `json:"count,omitempty"`
	Fresh     uint32 `json:"fresh,omitempty"` // acts without a reason to repeat them
	Here      uint32 `json:"here,omitempty"`  // of Count, at Place
	FreshHere uint32 `json:"fresh_here,omitempty"`
}

// looped reports whether the run is a loop.
func (r *run) looped() bool {
	switch r.Kind {
	case noLoop:
		return false
	case bounded:
		return r.Count >= ManyRepeats
	}
	return r.Fresh >= Repeats || r.Count >= ManyRepeats
}

// add adds the next act. It returns the run that the act ends; its Count is 0 if the act ends
// none.
func (r *run) add(a Act) (ended run) {
	tied := a.place == r.Place && (r.Count > 0 || r.Mixed)
	switch {
	case tied && r.Mixed:
		return run{}
	case tied && a.same != r.Same:
		ended = *r
		ended.Count, ended.Fresh = r.Count-r.Here, r.Fresh-r.FreshHere
		*r = run{Mixed: true, Place: a.place}
		return ended
	case r.Count == 0 || a.same != r.Same:
		ended = *r
		*r = run{Kind: a.kind, Same: a.same}
	}
	if !tied {
		r.Place, r.Here, r.FreshHere = a.place, 0, 0
	}
	r.Count++
	r.Here++
	// An agent that reports the same escalation again asks for the answer, and asks nothing new.
	if again := a.asked != 0 && a.asked == r.Asked; !a.excused && !again {
		r.Fresh++
		r.FreshHere++
	}
	r.Asked = a.asked
	return ended
}

// done says what each kind of act did.
var done = [...]string{bounded: "executed", write: "executed", transfer: "escalated", refusal: "refused"}

// loopFinding returns the finding on a run. at is the trace that made it a loop.
func loopFinding(kind kind, count uint32, name, first, last, at string) schema.SessionFinding {
	return schema.SessionFinding{
		Type: schema.ActionLoop, Severity: schema.SeverityMedium, TraceID: strings.Clone(at), Field: "action.name",
		Description: fmt.Sprintf("%q was %s %d times in a row with the same target and parameters, from trace %q to trace %q",
			clip(name), done[kind], count, first, last),
	}
}

// repeated follows the run of a Judge's session. Ids are copied into reused memory, because nearly
// every trace begins a run.
type repeated struct {
	acts   Acts
	run    run
	name   string
	first  []byte // id of the run's first trace
	last   []byte // of its newest
	before []byte // of the newest before the run's newest place
	at     []byte // of the trace that made it a loop
	listed bool   // an earlier part has reported the run
}

// loop adds a trace to the run of equal acts, and reports a loop that ends.
func (j *Judge) loop(t *schema.Trace, s stamp) {
	r := &j.repeated
	if r.run.Count > 0 && string(r.last) == t.TraceID { // one id, several contents: it is one act
		return
	}
	act := r.acts.Of(t)
	act.place = s.place()
	looped, place := r.run.looped(), r.run.Place
	ended := r.run.add(act)
	if ended.looped() && !r.listed {
		last := r.last
		if r.run.Mixed {
			last = r.before
		}
		j.found.add(loopFinding(ended.Kind, ended.Count, r.name, string(r.first), string(last), string(r.at)))
	}
	switch {
	case r.run.Mixed:
		r.listed = false
		return
	case r.run.Count == 1:
		r.name, r.first, r.before, r.listed = act.name, append(r.first[:0], t.TraceID...), r.before[:0], false
	case place != act.place:
		r.before = append(r.before[:0], r.last...)
	}
	r.last = append(r.last[:0], t.TraceID...)
	if !looped && r.run.looped() {
		r.at = append(r.at[:0], t.TraceID...)
	}
}

// open adds the loop that has not ended.
func (r *repeated) open(f *findings) {
	if r.run.looped() && !r.listed {
		f.add(loopFinding(r.run.Kind, r.run.Count, r.name, string(r.first), string(r.last), string(r.at)))
	}
}

// carriedRun is the run with which a part ends. A part that continues it does not report it again.
type carriedRun struct {
	Run    run    `json:"run"`
	Name   string `json:"name"`
	First  string `json:"first"`
	Last   string `json:"last"`
	Before string `json:"before,omitempty"`
	Listed bool   `json:"listed,omitempty"`
}

// carried returns the run for the next part, nil where there is none to continue.
func (r *repeated) carried() *carriedRun {
	if r.run.Kind == noLoop || r.run.Count == 0 {
		return nil
	}
	return &carriedRun{Run: r.run, Name: r.name, First: string(r.first), Last: string(r.last), Before: string(r.before),
		Listed: r.listed || r.run.looped()}
}

func (r *repeated) resume(c *carriedRun) {
	if c != nil {
		r.run, r.name, r.listed = c.Run, c.Name, c.Listed
		r.first, r.last, r.before = []byte(c.First), []byte(c.Last), []byte(c.Before)
	}
}
