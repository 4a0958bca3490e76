// Package web is the console: pages for the people who answer for a fleet.
//
// Its owner's sentence: a person sees at a glance how the fleet is, and reaches from there, by links
// alone, the trace that explains it.
//
// It owns the pages (templates), their style and script (assets), the login, and the charts, which are
// SVG that the server draws. It does not own the queries (web/rows) or the rights of tokens
// (pipeline/auth). Package machine starts it inside plumbline up, cmd/console as a service of its own.
//
// Invariants: a page has rows of this process's tenant and of the token's agents only, whatever the
// address says; what agents wrote reaches a page only through html/template, as text; a page loads
// nothing but this package's own assets, and its Content-Security-Policy forbids the rest; a token is
// never part of a page, a cookie or a log; no request changes anything unless it is a POST of the
// console's own page; what a visitor does is done by ingest, with the visitor's own token, which is held encrypted; every
// query is bounded in time, memory and rows; a database that is slow or away costs a page, and nothing else;
// a service that hangs costs what it would have said.
package web
