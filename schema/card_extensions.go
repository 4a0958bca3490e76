package schema

import (
	"crypto/ed25519"
	"fmt"
)

// MaxKeys is how many keys a card may register.
const MaxKeys = 64

// ownExtension is the namespace that Plumbline itself reads in a card.
const ownExtension = "plumbline"

// extensions reads the extensions block (AAP section 4.8). Each member's name is the namespace
// of a protocol, and its value is an object. The content of the object belongs to the protocol;
// it is ignored unless the namespace is Plumbline's.
func (d *cardDecoder) extensions() {
	if !d.enter('{', "an object") {
		return
	}
	for d.more() {
		name, from := d.name(), d.dec.InputOffset()
		switch {
		case name == "":
			d.fault("the name of a protocol must not be empty")
			d.opaque()
		case d.null():
		case d.err == nil && d.dec.PeekKind() != '{':
			d.wrongType("an object: each extension is the namespace of a protocol")
		case name == ownExtension:
			d.object(members{"keys": d.optional(d.keys)})
		default:
			d.opaque()
		}
		if d.err == nil {
			d.card.Extensions = append(d.card.Extensions, Member{Name: name, Value: d.span(from)})
		}
	}
}

// keys reads the public keys that the agent signs with.
func (d *cardDecoder) keys() {
	if !d.enter('[', "an array of keys") {
		return
	}
	at := string(d.dec.StackPointer())
	known := map[string]bool{}
	for i := 0; d.more(); i++ {
		key := d.key()
		if key.KeyID != "" && known[key.KeyID] {
			d.faultAt(fmt.Sprintf("%s/%d/key_id", at, i), "%q is the key_id of an earlier key too", clip(key.KeyID))
		}
		known[key.KeyID] = true
		d.card.Keys = append(d.card.Keys, key)
	}
	if n := len(d.card.Keys); n > MaxKeys {
		d.faultAt(at, "%d keys, a card may have %d", n, MaxKeys)
	}
}

func (d *cardDecoder) key() Key {
	var key Key
	var algorithm string
	d.object(members{
		"key_id":     into(&key.KeyID, d.identifier),
		"algorithm":  choice(&d.tableReader, &algorithm, SignatureEd25519),
		"public_key": func() { _, key.PublicKey = d.base64(ed25519.PublicKeySize) },
	}, "key_id", "algorithm", "public_key")
	return key
}
