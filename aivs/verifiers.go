package aivs

import "github.com/plumbline/plumbline/aivs/viewer"

// Verifiers returns each verify.py that Plumbline writes or has written, by its SHA-256, for the page of
// package viewer.
func Verifiers() map[string]viewer.Verifier {
	known := map[string]viewer.Verifier{hexSHA256(verifier): {Known: true, Attested: true}}
	for digest, former := range formerVerifiers {
		known[digest] = viewer.Verifier{Known: true, Attested: former.attested, FormerGzip: former.formerGzip}
	}
	return known
}
