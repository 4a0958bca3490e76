package anchor_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
)

var cosignedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func witness(t *testing.T, w *anchortest.Witness) *anchor.Witness {
	t.Helper()
	parsed, err := anchor.ParseWitness(w.Key() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

const someCheckpoint = "log.example\n7\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— log.example AAAAAAAA\n"

func TestCosignatures(t *testing.T) {
	w, other := anchortest.NewWitness("witness.example/w1", 1), anchortest.NewWitness("witness.example/w2", 2)
	signed := other.Cosign(w.Cosign([]byte(someCheckpoint), cosignedAt), cosignedAt.Add(time.Hour))
	found, err := anchor.Cosignatures(signed, []*anchor.Witness{witness(t, w)})
	if err != nil || len(found) != 1 || found[0].Name != w.Name || !found[0].At.Equal(cosignedAt) {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = anchor.Cosignatures(signed, []*anchor.Witness{witness(t, other), witness(t, w)}); err != nil || len(found) != 2 {
		t.Errorf("of both: %+v, %v", found, err)
	}
	if lines := anchor.Lines([]note.Signature{found[0].Signature, found[1].Signature}); !bytes.HasSuffix(signed, lines) || bytes.Count(lines, []byte("\n")) != 2 {
		t.Errorf("%q", lines)
	}
	if lines := anchor.Lines(nil); lines != nil {
		t.Errorf("%q", lines)
	}
	for name, signed := range map[string][]byte{
		"of nobody":        []byte(someCheckpoint),
		"of another":       other.Cosign([]byte(someCheckpoint), cosignedAt),
		"of a renamed key": anchortest.NewWitness("witness.example/w3", 1).Cosign([]byte(someCheckpoint), cosignedAt),
	} {
		if found, err := anchor.Cosignatures(signed, []*anchor.Witness{witness(t, w)}); err != nil || len(found) != 0 {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	for name, change := range map[string]func([]byte) []byte{
		"another size": func(b []byte) []byte { return bytes.Replace(b, []byte("\n7\n"), []byte("\n8\n"), 1) },
		"another time": func(b []byte) []byte { return changeSignature(t, b, 4+7) },
		"another byte": func(b []byte) []byte { return changeSignature(t, b, 20) },
		"a byte too few": func(b []byte) []byte {
			return anotherSignature(t, b, func(raw []byte) []byte { return raw[:len(raw)-1] })
		},
		"a byte more": func(b []byte) []byte {
			return anotherSignature(t, b, func(raw []byte) []byte { return append(raw, 0) })
		},
	} {
		if found, err := anchor.Cosignatures(change(w.Cosign([]byte(someCheckpoint), cosignedAt)), []*anchor.Witness{witness(t, w)}); err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
	// Seconds up to 2^63-1 are accepted as a time.
	for at, good := range map[int64]bool{math.MaxInt64: true, -1: false, math.MinInt64: false} {
		found, err := anchor.Cosignatures(w.Cosign([]byte(someCheckpoint), time.Unix(at, 0)), []*anchor.Witness{witness(t, w)})
		if (err == nil && len(found) == 1) != good {
			t.Errorf("%d seconds: %+v, %v", uint64(at), found, err) // as it is signed
		}
	}
}

// changeSignature changes a byte of the last signature.
func changeSignature(t *testing.T, signed []byte, at int) []byte {
	t.Helper()
	return anotherSignature(t, signed, func(raw []byte) []byte {
		raw[at] ^= 0x80
		return raw
	})
}

// anotherSignature changes the last signature.
func anotherSignature(t *testing.T, signed []byte, change func([]byte) []byte) []byte {
	t.Helper()
	i := bytes.LastIndexByte(bytes.TrimSpace(signed), ' ') + 1
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signed[i:])))
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(signed[:i]), base64.StdEncoding.EncodeToString(change(raw))+"\n"...)
}

// A key of small order is refused for a log and for a witness: anyone can sign for it.
func TestKeysOfSmallOrder(t *testing.T) {
	const name = "log.example"
	weak := append([]byte{1}, make([]byte, 31)...) // the neutral element
	log, err := note.NewEd25519VerifierKey(name, weak)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.ParseVerifier(log); err == nil || !strings.Contains(err.Error(), "small order") {
		t.Errorf("a log: %v", err)
	}
	raw := append([]byte{4}, weak...)
	sum := sha256.Sum256(append([]byte(name+"\n"), raw...))
	text := fmt.Sprintf("%s+%x+%s", name, sum[:4], base64.StdEncoding.EncodeToString(raw))
	if _, err := anchor.ParseWitness(text); err == nil || !strings.Contains(err.Error(), "small order") {
		t.Errorf("a witness: %v", err)
	}
}

// A key is refused if it has another form, or if its hash does not match.
func TestKeysOfWitnesses(t *testing.T) {
	good := anchortest.NewWitness("witness.example/w1", 1).Key()
	name, rest, _ := strings.Cut(good, "+")
	for _, bad := range []string{
		"", "witness", name, "other" + rest, "+" + rest, "a b+" + rest, name + "+00000000" + rest[8:], good[:len(good)-4], good + "x",
		anchortest.NewWitness("", 1).Key(), anchortest.NewWitness("two words", 1).Key(),
		name + "+" + rest[:8] + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 32)...)),
	} {
		if w, err := anchor.ParseWitness(bad); err == nil {
			t.Errorf("%q is read as %s", bad, w.Name())
		}
	}
}
