// Package schema defines the data: AP-Traces and Alignment Cards (AAP sections 4 and 5),
// verdicts (7.4), drift alerts (8.4), the receipts that Plumbline's stages exchange, and the
// limits of all of them.
//
// It owns the strict reading of JSON, decoding and validation. It reports every fault of a
// record, each with the JSON pointer of its place. Unknown members are kept in the raw record
// and ignored, never refused. Lint hints at parts of a valid card that its publisher probably
// did not mean, and Card.Text shows a card to people. Package schema/signature makes and checks
// signatures; schema/a2a and schema/mcp connect to A2A and MCP.
//
// It does no I/O, reads no clock and judges nothing (package aap judges). It imports no other
// package of Plumbline.
//
// It is one large package because all records have one strict reader (reader.go; scan.go makes it
// fast for traces), one set of limits and one form of refusal, and because they refer to each other.
//
// Invariants: the evidence is the bytes received, so a Trace keeps them (Raw) and its Digest is
// their SHA-256. Strings of a decoded Trace may alias Raw, so Raw must never be written to.
package schema
