// Package floor is the least work that a verifier could do, and what `plumbline bench` compares every
// scenario with: it reads the traces of stream TRACES from one consumer, scans each of them by
// hand, inserts 25 columns into a table, and acknowledges a whole block at once.
//
// The table has the columns, codecs and fsync settings of table traces. Nothing is decoded
// strictly, judged, hashed or published. The package uses the clients of broker and database
// themselves and, but for the names of subjects, no package of the pipeline, so the floor does not become faster together with what
// is compared with it.
//
// It does not own the clock, the traces or the servers.
package floor
