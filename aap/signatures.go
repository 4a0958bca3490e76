package aap

import (
	"slices"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// checkSignature finds the key that the card is signed with; a signature that
// does not verify is a fault. Whoever writes a card writes its own keys too: one
// that is signed with these alone is whole, but says nothing about who made it.
func (c *Compiled) checkSignature(trusted []schema.Key) []schema.Fault {
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
