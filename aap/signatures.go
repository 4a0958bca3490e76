package aap

import (
	"errors"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// findSigner finds the key that the card is signed with; a signature that does
// not verify is a fault. Whoever writes a card writes its own keys too: one
// that is signed with these alone is whole, but says nothing about who made it.
func (c *Compiled) findSigner(trusted []schema.Key) []schema.Fault {
	if c.Card.Signature == nil {
		return nil
	}
	key, err := signature.Find(c.Card.Raw, *c.Card.Signature, slices.Concat(trusted, c.Card.Keys))
	if err != nil {
		return []schema.Fault{{Pointer: "/signature", Message: err.Error()}}
	}
	c.SignedBy = &key
	c.SelfSigned = !slices.ContainsFunc(trusted, func(k schema.Key) bool { return k.PublicKey.Equal(key.PublicKey) })
	return nil
}

// checkSignature holds a trace to the keys and the commitment of its card (AAP
// section 9.3). A signature that does not verify is a finding where the card
// registers keys or commits to signing. A card that does neither leaves nothing
// to check it by: it may be of another scheme altogether, hence a warning.
func (j *Judge) checkSignature() {
	card := j.card.Card
	committed := card.Audit.TamperEvidence == schema.TamperSigned
	if len(j.trace.Others) == 0 && !committed {
		return
	}
	err := j.verifySignature()
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

func (j *Judge) verifySignature() error {
	s, err := signature.Of(j.trace.Others)
	if err != nil {
		return err
	}
	return signature.Verify(j.trace.Raw, *s, j.card.Card.Keys)
}
