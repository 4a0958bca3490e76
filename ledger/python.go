package ledger

import _ "embed"

// Python is a verifier of ledger files that needs only Python's standard library, for readers
// who do not trust Plumbline's programs.
//
//go:embed verify_ledger.py
var Python []byte
