package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// DecodeReceipts decodes a message of stream RECEIPTS. It appends the receipts to into. If the
// message asks for the end of a session, it sets end instead. Unknown, missing and repeated
// members are errors.
func DecodeReceipts(data []byte, into []schema.Receipt) (receipts []schema.Receipt, end *EndRequest, err error) {
	d := receiptDecoder{json: jsontext.NewDecoder(bytes.NewReader(data)), receipts: into}
	err = d.object(func(name string) error {
		switch name {
		case "receipts":
			return d.list()
		case "end":
			return d.endRequest()
		}
		return unknownMember(name)
	})
	if err == nil && d.members != 1 {
		err = fmt.Errorf("it has %d members, want one of receipts and end", d.members)
	}
	if err == nil {
		err = d.atEnd()
	}
	if err != nil {
		return into, nil, fmt.Errorf("decode receipts: %w", err)
	}
	return d.receipts, d.end, nil
}

type receiptDecoder struct {
	json     *jsontext.Decoder
	receipts []schema.Receipt
	end      *EndRequest
	members  int // of the last object

	agent, session string // of the previous receipt: neighbours often share them
}

func unknownMember(name string) error { return fmt.Errorf("unknown member %q", name) }

// object reads an object and calls member for each value. The decoder itself refuses repeated
// names.
func (d *receiptDecoder) object(member func(name string) error) error {
	if err := d.open('{'); err != nil {
		return err
	}
	members := 0
	for ; d.json.PeekKind() != '}'; members++ {
		name, err := d.json.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	d.members = members
	_, err := d.json.ReadToken()
	return err
}

func (d *receiptDecoder) open(kind jsontext.Kind) error {
	token, err := d.json.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("found %v, want %v", token.Kind(), kind)
	}
	return err
}

func (d *receiptDecoder) atEnd() error {
	_, err := d.json.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = errors.New("something follows the object")
	}
	return err
}

func (d *receiptDecoder) list() error {
	if err := d.open('['); err != nil {
		return err
	}
	for d.json.PeekKind() != ']' {
		r, err := d.receipt()
		if err != nil {
			return fmt.Errorf("receipt %d: %w", len(d.receipts), err)
		}
		d.receipts = append(d.receipts, r)
	}
	_, err := d.json.ReadToken()
	return err
}

func (d *receiptDecoder) receipt() (r schema.Receipt, err error) {
	required := 5
	err = d.object(func(name string) error {
		if name == "end" || name == "bytes" {
			required++
		}
		return d.receiptMember(&r, name)
	})
	if err == nil && d.members != required {
		err = fmt.Errorf("it has %d members, want %d", d.members, required)
	}
	return r, err
}

func (d *receiptDecoder) receiptMember(r *schema.Receipt, name string) (err error) {
	switch name {
	case "agent_id":
		r.AgentID, err = d.name(&d.agent)
	case "session_id":
		r.SessionID, err = d.name(&d.session)
	case "sequence":
		r.Sequence, err = d.number()
	case "digest":
		err = d.digest(&r.Digest)
	case "event_time":
		r.EventTime, err = d.time()
	case "bytes":
		r.Bytes, err = d.size()
	case "end":
		r.End, err = d.boolean()
	default:
		err = unknownMember(name)
	}
	return err
}

func (d *receiptDecoder) endRequest() error {
	end := &EndRequest{}
	err := d.object(func(name string) (err error) {
		switch name {
		case "agent_id":
			end.AgentID, err = d.name(&d.agent)
		case "session_id":
			end.SessionID, err = d.name(&d.session)
		case "through_sequence":
			end.ThroughSequence, err = d.number()
		default:
			err = unknownMember(name)
		}
		return err
	})
	if err == nil && d.members != 3 {
		err = fmt.Errorf("the end of a session has %d members, want 3", d.members)
	}
	d.end = end
	return err
}

// text reads a string. The result is valid until the next read.
func (d *receiptDecoder) text() ([]byte, error) {
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
	text, err := d.text()
	if err == nil && string(text) != *last {
		*last = string(text)
	}
	return *last, err
}

func (d *receiptDecoder) digest(into *schema.Digest) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	return into.UnmarshalText(text)
}

func (d *receiptDecoder) time() (t time.Time, err error) {
	text, err := d.text()
	if err != nil {
		return t, err
	}
	return t, t.UnmarshalText(text)
}

func (d *receiptDecoder) number() (uint64, error) {
	value, err := d.json.ReadValue()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(value), 10, 64)
}

func (d *receiptDecoder) size() (int, error) {
	value, err := d.json.ReadValue()
	if err != nil {
		return 0, err
	}
	size, err := strconv.ParseUint(string(value), 10, 31)
	return int(size), err
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
