package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// alert is a message of stream ALERTS in the form in which endpoints get it.
type alert struct {
	id       string // webhook-id
	kind     subject.AlertKind
	severity schema.Severity // the gravest one; empty for drift
	body     []byte
}

// body is the JSON that endpoints get. The same message of the stream always has the same bytes.
type body struct {
	Type      string          `json:"type"`      // "alert.violation", "alert.finding" or "alert.drift"
	Timestamp time.Time       `json:"timestamp"` // when the broker received the alert
	Tenant    string          `json:"tenant"`
	Severity  schema.Severity `json:"severity,omitempty"`
	Data      json.RawMessage `json:"data"` // the alert as published
}

// readAlert encodes a message of stream ALERTS.
func readAlert(m *stream.Message, created time.Time, tenant string) (*alert, error) {
	kind, err := subject.ParseAlert(m.Subject)
	if err != nil {
		return nil, err
	}
	a := &alert{id: webhookID(m.ID(), created, m.Sequence), kind: kind}
	if a.severity, err = gravest(kind, m.Data); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(body{Type: "alert." + string(kind), Timestamp: m.Received.UTC(), Tenant: tenant, Severity: a.severity, Data: m.Data})
	if err != nil {
		return nil, errors.New("the alert cannot be encoded")
	}
	a.body = bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	return a, nil
}

// webhookID returns the id of an alert for receivers: that under which it was published, so an
// alert that is published again has the same. A dot separates the parts of what is signed, and no
// id may contain one.
func webhookID(published string, created time.Time, sequence uint64) string {
	if published == "" {
		published = fmt.Sprintf("alert_%d_%d", created.UnixNano(), sequence)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, published)
}

// gravest returns the gravest severity that an alert states: of its violations, or of its findings.
func gravest(kind subject.AlertKind, data []byte) (gravest schema.Severity, err error) {
	type remark struct {
		Severity schema.Severity `json:"severity"`
	}
	var stated struct {
		Violations []remark `json:"violations"`
		Findings   []remark `json:"findings"`
		Finding    remark   `json:"finding"` // of a loop
	}
	if !json.Valid(data) {
		return "", errors.New("the alert is not JSON")
	}
	if json.Unmarshal(data, &stated) != nil {
		return "", nil // of a form that this version does not know: endpoints get it whatever they filter by
	}
	var remarks []remark
	switch kind {
	case subject.AlertViolation:
		remarks = stated.Violations
	case subject.AlertFinding:
		remarks = append(stated.Findings, stated.Finding)
	}
	for _, r := range remarks {
		if rank(r.Severity) > rank(gravest) {
			gravest = r.Severity
		}
	}
	return gravest, nil
}
