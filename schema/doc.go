// Package schema says what the data is: AP-Traces and Alignment Cards (AAP
// sections 4 and 5), verdicts (7.4), drift alerts (8.4), the receipts that
// travel between our own stages, and the limits all of them live within.
//
// It owns strict decoding and validation. Every fault of a record is reported,
// each with the JSON pointer of its place; what nobody knows is kept in the raw
// record and ignored, never refused. Lint hints at what a valid card probably does
// not mean, and Card.Text shows it to people. Signatures are made and checked in
// schema/signature, A2A and MCP are met in schema/a2a and schema/mcp.
//
// It does no I/O, reads no clock and judges nothing: package aap does. It
// imports no other package of Plumbline.
//
// Invariants: the evidence is the bytes received, so a Trace keeps them (Raw)
// and its Digest is their SHA-256; strings of a decoded Trace may alias Raw,
// which must therefore never be written to.
package schema
