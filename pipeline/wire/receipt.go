package wire

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// maxReceiptBytes is the maximum size of one message, well below the usual limit of 1 MB.
const maxReceiptBytes = 700 << 10

// Receipts returns the receipts of one partition as they are published, in as many messages as
// they need.
func Receipts(partition int, receipts []schema.Receipt) ([]Message, error) {
	return receiptsOf(partition, receipts, maxReceiptBytes)
}

// receiptsOf encodes {"stream_created":…,"receipts":[…]} in messages of about the given size. All receipts
// of a message are of one stream.
func receiptsOf(partition int, receipts []schema.Receipt, size int) (messages []Message, err error) {
	var body []byte
	for i := range receipts {
		r := &receipts[i]
		if len(body) == 0 {
			body = appendStream(append(make([]byte, 0, min(size+2048, 100+300*len(receipts))), '{'), r.Stream)
			body = append(body, `"receipts":[`...)
		} else {
			body = append(body, ',')
		}
		if body, err = appendNames(body, r.AgentID, r.SessionID); err != nil {
			return nil, fmt.Errorf("encode receipts: %w", err)
		}
		body = append(body, `,"sequence":`...)
		body = strconv.AppendUint(body, r.Sequence, 10)
		body = append(body, `,"digest":"`...)
		body = hex.AppendEncode(body, r.Digest[:])
		body = append(body, `","event_time":"`...)
		body = r.EventTime.UTC().AppendFormat(body, time.RFC3339Nano)
		body = append(body, '"')
		if r.Bytes > 0 {
			body = strconv.AppendInt(append(body, `,"bytes":`...), int64(r.Bytes), 10)
		}
		if r.End {
			body = append(body, `,"end":true`...)
		}
		body = append(body, '}')
		if len(body) >= size || i == len(receipts)-1 || receipts[i+1].Stream != r.Stream {
			messages = append(messages, receiptMessage(partition, append(body, "]}"...)))
			body = nil
		}
	}
	return messages, nil
}

// ReceiptPartition returns the partition of a message of stream RECEIPTS. One whose subject names none
// belongs to the first.
func ReceiptPartition(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, ReceiptPrefix))
	if err != nil || n < 0 || n >= subject.Partitions {
		return 0
	}
	return n
}

func receiptMessage(partition int, body []byte) Message {
	return Message{Subject: ReceiptPrefix + strconv.Itoa(partition), ID: schema.DigestOf(body).String(), Data: body}
}

// appendStream appends the member that says which stream TRACES the sequences of a message count in. Another
// stream may have had the same sequences.
func appendStream(b []byte, created int64) []byte {
	if created == 0 {
		return b
	}
	b = time.Unix(0, created).UTC().AppendFormat(append(b, `"stream_created":"`...), time.RFC3339Nano)
	return append(b, `",`...)
}

// appendNames begins an object with the ids of agent and session.
func appendNames(b []byte, agent, session string) ([]byte, error) {
	b, err := jsontext.AppendQuote(append(b, `{"agent_id":`...), agent)
	if err != nil {
		return nil, fmt.Errorf("agent_id %q: %w", agent, err)
	}
	if b, err = jsontext.AppendQuote(append(b, `,"session_id":`...), session); err != nil {
		return nil, fmt.Errorf("session_id %q: %w", session, err)
	}
	return b, nil
}

// DecodeReceipts decodes a message of stream RECEIPTS. It appends the receipts to into. If the
// message asks for the end of a session, it returns that request as end instead.
func DecodeReceipts(data []byte, into []schema.Receipt) (receipts []schema.Receipt, end *EndRequest, err error) {
	d := receiptDecoder{json: jsontext.NewDecoder(bytes.NewReader(data)), receipts: into}
	required := 1
	members, err := d.object(func(name []byte) error {
		switch string(name) {
		case "stream_created":
			required++
			return d.text(&d.created)
		case "receipts":
			return d.list()
		case "end":
			return d.endRequest()
		}
		return unknownMember(name)
	})
	if err == nil && members != required {
		err = fmt.Errorf("it has %d members, want one of receipts and end, and perhaps stream_created", members)
	}
	if err == nil {
		if _, err = d.json.ReadToken(); err == nil {
			err = errors.New("something follows the object")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return into, nil, fmt.Errorf("decode receipts: %w", err)
	}
	if !d.created.IsZero() {
		for i := range d.receipts[len(into):] {
			d.receipts[len(into)+i].Stream = d.created.UnixNano()
		}
		if d.end != nil {
			d.end.Stream = d.created.UnixNano()
		}
	}
	return d.receipts, d.end, nil
}

// receiptDecoder reads token by token, because the exporter reads a receipt for each trace: json/v2
// takes 1.4 times as long (BenchmarkDecodeReceipt) and does not report a missing member.
type receiptDecoder struct {
	json     *jsontext.Decoder
	receipts []schema.Receipt
	end      *EndRequest
	created  time.Time // of the stream that they count in; zero in an old message

	agent, session string // of the previous receipt: neighbours often share them
}

func unknownMember(name []byte) error { return fmt.Errorf("unknown member %q", name) }

// object reads an object, calls member for each value, and returns how many there were. The
// decoder itself refuses repeated names.
func (d *receiptDecoder) object(member func(name []byte) error) (members int, err error) {
	if err := d.open('{'); err != nil {
		return 0, err
	}
	for ; d.json.PeekKind() != '}'; members++ {
		name, err := d.str()
		if err != nil {
			return 0, err
		}
		if err := member(name); err != nil {
			return 0, err
		}
	}
	_, err = d.json.ReadToken()
	return members, err
}

func (d *receiptDecoder) open(kind jsontext.Kind) error {
	token, err := d.json.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("found %v, want %v", token.Kind(), kind)
	}
	return err
}

func (d *receiptDecoder) list() error {
	if err := d.open('['); err != nil {
		return err
	}
	for d.json.PeekKind() != ']' {
		n := len(d.receipts)
		d.receipts = append(d.receipts, schema.Receipt{})
		if err := d.receipt(&d.receipts[n]); err != nil {
			return fmt.Errorf("receipt %d: %w", n, err)
		}
	}
	_, err := d.json.ReadToken()
	return err
}

func (d *receiptDecoder) receipt(r *schema.Receipt) error {
	required := 5
	members, err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "agent_id":
			r.AgentID, err = d.name(&d.agent)
		case "session_id":
			r.SessionID, err = d.name(&d.session)
		case "sequence":
			r.Sequence, err = d.number(64)
		case "digest":
			err = d.text(&r.Digest)
		case "event_time":
			err = d.text(&r.EventTime)
		case "bytes":
			var size uint64
			size, err = d.number(31)
			r.Bytes, required = int(size), required+1
		case "end":
			r.End, err = d.boolean()
			required++
		default:
			err = unknownMember(name)
		}
		return err
	})
	if err == nil && members != required {
		err = fmt.Errorf("it has %d members, want %d", members, required)
	}
	return err
}

func (d *receiptDecoder) endRequest() error {
	d.end = &EndRequest{}
	members, err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "agent_id":
			d.end.AgentID, err = d.name(&d.agent)
		case "session_id":
			d.end.SessionID, err = d.name(&d.session)
		case "through_sequence":
			d.end.ThroughSequence, err = d.number(64)
		default:
			err = unknownMember(name)
		}
		return err
	})
	if err == nil && members != 3 {
		err = fmt.Errorf("the end of a session has %d members, want 3", members)
	}
	return err
}

// str reads a string. The result is valid until the next read.
func (d *receiptDecoder) str() ([]byte, error) {
	value, err := d.json.ReadValue()
	if err != nil {
		return nil, err
	}
	if value.Kind() != '"' {
		return nil, fmt.Errorf("found %v, want a string", value.Kind())
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	return jsontext.AppendUnquote(nil, value)
}

func (d *receiptDecoder) name(last *string) (string, error) {
	text, err := d.str()
	if err == nil && string(text) != *last {
		*last = string(text)
	}
	return *last, err
}

func (d *receiptDecoder) text(into encoding.TextUnmarshaler) error {
	text, err := d.str()
	if err != nil {
		return err
	}
	return into.UnmarshalText(text)
}

func (d *receiptDecoder) number(bits int) (uint64, error) {
	value, err := d.json.ReadValue()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(value), 10, bits)
}

func (d *receiptDecoder) boolean() (bool, error) {
	token, err := d.json.ReadToken()
	if err != nil {
		return false, err
	}
	if token.Kind() != 't' && token.Kind() != 'f' {
		return false, fmt.Errorf("found %v, want true or false", token.Kind())
	}
	return token.Bool(), nil
}
