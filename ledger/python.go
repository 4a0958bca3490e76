package ledger

import _ "embed"

// Python is a verifier of ledger files that needs Python's standard library
// alone, for those who trust no program of ours.
//
//go:embed verify_ledger.py
var Python []byte
