package subject

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Partitions is the number of partitions of stream TRACES. It is fixed when the stream is
// created, because an agent's traces must never change their partition.
const Partitions = 16

const (
	tracePrefix  = "aap.trace."
	alertPrefix  = "aap.alert."
	storedPrefix = "traces."
)

// Traces is the filter for the subjects on which agents publish traces.
const Traces = tracePrefix + "*"

// Partition returns the partition of an agent's traces, 0..Partitions-1. The broker computes the
// same value when it stores a trace (FNV-1a of the token).
func Partition(agentID string) int {
	hash := fnv.New32a()
	hash.Write([]byte(Token(agentID)))
	return int(hash.Sum32() % Partitions)
}

// AlertKind is the third token of an alert's subject.
type AlertKind string

// The three kinds of alert.
const (
	AlertViolation AlertKind = "violation"
	AlertFinding   AlertKind = "finding"
	AlertDrift     AlertKind = "drift"
)

// Trace returns the subject on which an agent's traces are published.
func Trace(agentID string) string { return tracePrefix + Token(agentID) }

// Alert returns the subject of alerts about an agent.
func Alert(kind AlertKind, agentID string) string {
	return alertPrefix + string(kind) + "." + Token(agentID)
}

// Alerts returns the filter for the subjects of all alerts of a kind.
func Alerts(kind AlertKind) string { return alertPrefix + string(kind) + ".*" }

// ParseAlert returns the kind of alert in an alert's subject.
func ParseAlert(subject string) (AlertKind, error) {
	rest, ours := strings.CutPrefix(subject, alertPrefix)
	kind, _, two := strings.Cut(rest, ".")
	switch AlertKind(kind) {
	case AlertViolation, AlertFinding, AlertDrift:
		if ours && two {
			return AlertKind(kind), nil
		}
	}
	return "", fmt.Errorf("%q is not the subject of an alert", subject)
}

// StoredTraces returns the filter for all traces of a partition, 0..Partitions-1.
func StoredTraces(partition int) string {
	return storedPrefix + strconv.Itoa(partition) + ".>"
}

// ParseStored parses the subject under which stream TRACES stores a trace,
// "traces.<partition>.<token>". The token aliases the subject.
func ParseStored(stored string) (partition int, token string, err error) {
	rest, ok := strings.CutPrefix(stored, storedPrefix)
	if !ok {
		return 0, "", fmt.Errorf("%q is not the subject of a stored trace", stored)
	}
	number, token, ok := strings.Cut(rest, ".")
	partition, bad := strconv.Atoi(number)
	if !ok || token == "" || bad != nil || partition < 0 || partition >= Partitions {
		return 0, "", fmt.Errorf("%q is not the subject of a stored trace", stored)
	}
	return partition, token, nil
}
