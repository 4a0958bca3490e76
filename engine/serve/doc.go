// Package serve runs the ClickHouse library in this process. Importing it registers the process that
// package engine starts (protocol.Child).
//
// It owns the calls of the library and the library's session. It is not part of package engine because it needs the
// loader of the C library: a program that imports it is not static. That is plumbline-engine, and the tests that start an engine.
package serve
