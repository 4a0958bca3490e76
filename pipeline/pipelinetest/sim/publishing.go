package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// The errors of the server.
const (
	unavailable    = `{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
	storeFailed    = `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`
	notFound       = `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	batchDuplicate = `{"error":{"code":400,"err_code":10201,"description":"atomic publish batch contains duplicate message id"}}`
	incomplete     = `{"error":{"code":400,"err_code":10176,"description":"atomic publish batch is incomplete"}}`
)

// take handles a message of a client under its fault.
func (n *Network) take(c *connection, m *published) {
	w := n.process.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.process.dead {
		return
	}
	name := "publish " + m.subject
	if !strings.HasPrefix(m.subject, "$JS.API.") {
		name += " " + schema.DigestOf(m.data).String()[:8] // its id may be random
	}
	dice := w.dice(name)
	e := w.note(n.process.life, name, w.fault(dice))
	wait := time.Duration(1 + dice.Int64N(int64(travel)))
	applied, answered := true, true
	switch e.fault {
	case killBefore:
		n.kill()
		return
	case lost:
		if text := refusal(dice); text != "" && m.reply != "" {
			e.answer = text
			c.answer(wait, m.reply, []byte(text))
			return
		}
		go n.Cut()
		return
	case hangs:
		applied, answered = false, false
	case hangsAfter:
		answered = false
	case slow:
		wait += time.Duration(dice.Int64N(int64(requestLimit)))
	}
	if !applied {
		return
	}
	text := n.apply(m)
	e.answer = text
	switch e.fault {
	case killAfter:
		n.kill()
		return
	case unsure:
		go n.Cut()
		return
	}
	if answered && m.reply != "" {
		c.answer(wait, m.reply, []byte(text))
	}
}

// refusal returns the error of a server that has applied nothing. If it is empty, the server does
// not answer and the connection is lost.
func refusal(dice *rand.Rand) string { return []string{unavailable, storeFailed, ""}[dice.IntN(3)] }

func (n *Network) kill() {
	n.process.die()
	go n.Close()
}

// apply executes the request in a message and returns the answer.
func (n *Network) apply(m *published) string {
	if name, ok := strings.CutPrefix(m.subject, "$JS.API.STREAM.INFO."); ok {
		return streamInfo(n.process.world.streams[name])
	}
	if name, ok := strings.CutPrefix(m.subject, "$JS.API.STREAM.MSG.GET."); ok {
		return streamMessage(n.process.world.streams[name], m.data)
	}
	if m.header.Get("Nats-Batch-Id") != "" {
		return n.batch(m)
	}
	s, stored := n.route(m)
	sequence, duplicate := s.append(stored)
	return fmt.Sprintf(`{"stream":%q,"seq":%d,"duplicate":%t}`, s.Name, sequence, duplicate)
}

// route finds the stream of a message, and returns the form in which it is stored.
func (n *Network) route(m *published) (*Stream, Stored) {
	stored := Stored{Subject: m.subject, ID: m.header.Get("Nats-Msg-Id"), Data: m.data}
	token, isTrace := strings.CutPrefix(m.subject, subject.Trace(""))
	if !isTrace {
		return n.process.world.streams[stream.DeadLetters], stored
	}
	agent, err := subject.Agent(token)
	if err != nil {
		panic(err) // our own client wrote it
	}
	stored.Agent, stored.Partition = agent, subject.Partition(agent)
	stored.Subject = fmt.Sprintf("traces.%d.%s", stored.Partition, token)
	return n.process.world.streams[stream.Traces], stored
}

// batch handles a message of an atomic batch. The batch is stored completely when its last
// message arrives, or not at all.
func (n *Network) batch(m *published) string {
	id := m.header.Get("Nats-Batch-Id")
	place, err := strconv.Atoi(m.header.Get("Nats-Batch-Sequence"))
	if err != nil || place != len(n.batches[id])+1 {
		delete(n.batches, id)
		return incomplete
	}
	n.batches[id] = append(n.batches[id], m)
	if m.header.Get("Nats-Batch-Commit") == "" {
		return ""
	}
	members := n.batches[id]
	delete(n.batches, id)
	ids := map[string]bool{}
	for _, member := range members {
		s, stored := n.route(member)
		if _, known := s.known(stored.ID); known || ids[stored.ID] {
			return batchDuplicate
		}
		ids[stored.ID] = true
	}
	var last uint64
	for _, member := range members {
		s, stored := n.route(member)
		last, _ = s.append(stored)
	}
	s, _ := n.route(m)
	return fmt.Sprintf(`{"stream":%q,"seq":%d,"batch":%q,"count":%d}`, s.Name, last, id, len(members))
}

func streamInfo(s *Stream) string {
	state := s.state()
	return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":%q},"created":%q,"state":{"messages":%d,"first_seq":%d,"last_seq":%d}}`,
		s.Name, s.Created.Format(time.RFC3339Nano), state.Messages, state.FirstSequence, state.LastSequence)
}

// streamMessage answers {"seq": n}.
func streamMessage(s *Stream, question []byte) string {
	var asked struct {
		Sequence uint64 `json:"seq"`
	}
	if err := json.Unmarshal(question, &asked); err != nil || asked.Sequence == 0 || asked.Sequence > s.last() {
		return notFound
	}
	m := s.At(asked.Sequence)
	answer, err := json.Marshal(map[string]any{"message": map[string]any{
		"subject": m.Subject, "seq": asked.Sequence, "data": m.Data, "time": m.Received,
	}})
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}
	return string(answer)
}
