// Package webhook sends the alerts of stream ALERTS to HTTP endpoints, signed as Standard Webhooks
// (https://www.standardwebhooks.com) describes.
//
// It owns the list of endpoints, the form and the signature of a message, which alerts an endpoint
// gets, when an attempt is repeated, and when an alert is given up. It does not own what an alert
// says (packages schema and wire), or the position of an endpoint, which is a durable consumer in
// the broker (pipeline/stream).
//
// Invariants: an alert is acknowledged for an endpoint only after the endpoint answered 2xx, after
// the filter left it out, or after the operator's ledger has recorded that it was given up. So a
// killed process loses none; the alert on its way may be sent twice, with the same webhook-id. An
// endpoint gets its alerts one after the other, in the order of the stream, also from several
// processes. Endpoints do not wait for each other. Secrets, URLs and the contents of alerts are
// never logged.
package webhook
