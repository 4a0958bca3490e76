package aap

import (
	"errors"
	"strings"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// checkSignature checks a trace against the keys and the commitment of its card (AAP section
// 9.3). A signature that does not verify is a finding where the card registers keys or commits
// to signing. Where the card does neither, the signature cannot be checked and may follow
// another scheme, so it gives a warning.
func (j *Judge) checkSignature() {
	card := j.card.Card
	committed := card.Audit.TamperEvidence == schema.TamperSigned
	if len(j.trace.Others) == 0 && !committed {
		return
	}
	s, err := signature.Of(j.trace.Others)
	if err == nil {
		err = signature.Verify(j.trace.Raw, *s, card.Keys)
	}
	switch {
	case err == nil:
	case errors.Is(err, signature.ErrMissing):
		if committed {
			j.finding(schema.MissingSignature, signature.Member, "the card commits to signed traces, and this one is not signed")
		}
	case committed || len(card.Keys) > 0:
		j.finding(schema.BadSignature, signature.Member, strings.ToValidUTF8(clip(err.Error()), ""))
	default:
		j.warning(schema.WarnUncheckedSignature, signature.Member, "the trace is signed, and its card registers no keys to check it by")
	}
}
