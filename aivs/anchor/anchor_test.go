package anchor_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/anchor"
)

const origin = "example.org/bundles"

var logKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))

// testLog is a log in memory.
type testLog struct {
	hashes []tlog.Hash
	leaves [][]byte
	signer note.Signer
	key    note.Verifier
}

func newLog(t testing.TB) *testLog {
	t.Helper()
	signer, err := anchor.NewSigner(origin, logKey)
	if err != nil {
		t.Fatal(err)
	}
	vkey, err := anchor.VerifierKey(origin, logKey.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	key, err := anchor.ParseVerifier(" " + vkey + " \n")
	if err != nil {
		t.Fatal(err)
	}
	return &testLog{signer: signer, key: key}
}

func (l *testLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found[i] = l.hashes[index]
	}
	return found, nil
}

func (l *testLog) add(t testing.TB, leaf []byte) {
	t.Helper()
	hashes, err := tlog.StoredHashes(int64(len(l.leaves)), leaf, l)
	if err != nil {
		t.Fatal(err)
	}
	l.hashes, l.leaves = append(l.hashes, hashes...), append(l.leaves, leaf)
}

func (l *testLog) checkpoint(t testing.TB, size int) []byte {
	t.Helper()
	root, err := tlog.TreeHash(int64(size), l)
	if err != nil {
		t.Fatal(err)
	}
	c := anchor.Checkpoint{Origin: origin, Size: int64(size), Root: root}
	signed, err := c.Sign(l.signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func leafOf(t testing.TB, i int) []byte {
	t.Helper()
	leaf, err := anchor.Leaf(fmt.Sprintf("session %d", i), fmt.Sprintf("%064x", i))
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func grown(t testing.TB, leaves int) *testLog {
	t.Helper()
	l := newLog(t)
	for i := range leaves {
		l.add(t, leafOf(t, i))
	}
	return l
}

func (l *testLog) prove(t testing.TB, index, size int) *anchor.Proof {
	t.Helper()
	hashes, err := tlog.ProveRecord(int64(size), int64(index), l)
	if err != nil {
		t.Fatal(err)
	}
	return &anchor.Proof{Index: int64(index), Hashes: hashes, Checkpoint: l.checkpoint(t, size)}
}

func TestLeaf(t *testing.T) {
	leaf, err := anchor.Leaf("sess-1", strings.Repeat("ab", 32))
	if want := "aivs-bundle/v1\nsess-1\n" + strings.Repeat("ab", 32) + "\n"; err != nil || string(leaf) != want {
		t.Errorf("%q, %v", leaf, err)
	}
	for _, digest := range []string{"", "ab", strings.Repeat("AB", 32), strings.Repeat("zz", 32)} {
		if _, err := anchor.Leaf("s", digest); err == nil {
			t.Errorf("digest %q", digest)
		}
	}
	for _, text := range []string{"", "x", "aivs-bundle/v1\na%0ab\n" + strings.Repeat("ab", 32) + "\n", "aivs-bundle/v1\na\n" + strings.Repeat("ab", 32), "aivs-bundle/v1\n%\n" + strings.Repeat("ab", 32) + "\n"} {
		if id, _, err := anchor.ParseLeaf([]byte(text)); err == nil {
			t.Errorf("%q is of session %q", text, id)
		}
	}
}

// Two bundles never have the same leaf, whatever their session ids are.
func TestLeafIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, digest := rapid.String().Draw(t, "id"), fmt.Sprintf("%064x", rapid.Uint64().Draw(t, "digest"))
		leaf, err := anchor.Leaf(id, digest)
		if err != nil {
			t.Fatal(err)
		}
		gotID, gotDigest, err := anchor.ParseLeaf(leaf)
		if err != nil || gotID != id || gotDigest != digest {
			t.Errorf("%q became %q, %q: %v", id, gotID, gotDigest, err)
		}
	})
}

func TestEveryLeafIsProven(t *testing.T) {
	const size = 100
	l := grown(t, size)
	for i := range size {
		proof, err := anchor.ParseProof(l.prove(t, i, size).Text())
		if err != nil {
			t.Fatal(err)
		}
		c, err := proof.Verify(l.leaves[i], l.key)
		if err != nil || c.Size != size || c.Origin != origin {
			t.Errorf("leaf %d: %+v, %v", i, c, err)
		}
		if _, err := proof.Verify(l.leaves[(i+1)%size], l.key); err == nil {
			t.Errorf("leaf %d: the proof also verifies another leaf", i)
		}
	}
	if text := string(grown(t, 1).prove(t, 0, 1).Text()); !strings.HasPrefix(text, "c2sp.org/tlog-proof@v1\nindex 0\n\nexample.org/bundles\n1\n") {
		t.Errorf("the proof of the only leaf: %q", text)
	}
}

// Changing any byte of a proof invalidates it, except bytes that are not used.
func TestProofBytesCount(t *testing.T) {
	l := grown(t, 37)
	text := l.prove(t, 20, 37).Text()
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		proof, err := anchor.ParseProof(changed)
		if err != nil {
			continue
		}
		if _, err := proof.Verify(l.leaves[20], l.key); err == nil {
			t.Errorf("byte %d, %q", i, text[max(0, i-10):i+1])
		}
	}
}

func TestProofForms(t *testing.T) {
	l := grown(t, 5)
	good := string(l.prove(t, 2, 5).Text())
	extra, err := anchor.ParseProof([]byte(strings.Replace(good, "\nindex", "\nextra AAAA\nindex", 1)))
	if err != nil {
		t.Fatalf("extra data: %v", err)
	}
	if _, err := extra.Verify(l.leaves[2], l.key); err != nil {
		t.Errorf("extra data: %v", err)
	}
	cosigned := good + "— witness.example mJirIklj\n"
	if proof, err := anchor.ParseProof([]byte(cosigned)); err != nil {
		t.Errorf("a witness: %v", err)
	} else if _, err := proof.Verify(l.leaves[2], l.key); err != nil {
		t.Errorf("an unknown witness: %v", err)
	}
	for name, text := range map[string]string{
		"nothing": "", "other type": strings.Replace(good, "@v1", "@v2", 1), "leading zero": strings.Replace(good, "index 2", "index 02", 1),
		"negative": strings.Replace(good, "index 2", "index -2", 1), "no index": strings.Replace(good, "index 2\n", "", 1),
		"no checkpoint": good[:strings.Index(good, "\n\n")], "long": good + strings.Repeat("x", 1<<20),
		"an index without its name": strings.Replace(good, "index 2", "2", 1), "nothing but its type": "c2sp.org/tlog-proof@v1\n\n" + good,
		"too high": strings.Replace(good, "index 2\n", "index 2\n"+strings.Repeat(strings.Repeat("A", 43)+"=\n", 64), 1),
	} {
		if _, err := anchor.ParseProof([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Input is accepted up to its bound, and refused beyond it.
func TestBounds(t *testing.T) {
	l := grown(t, 3)
	const bound = 64 << 10
	noted := func(size int) []byte { // a checkpoint with a long extension line
		t.Helper()
		text := fmt.Sprintf("%s\n3\n%s\n", origin, tlog.Hash{})
		signed, err := note.Sign(&note.Note{Text: text + "\n"}, l.signer)
		if err != nil {
			t.Fatal(err)
		}
		signed, err = note.Sign(&note.Note{Text: text + strings.Repeat("x", size-len(signed)) + "\n"}, l.signer)
		if err != nil || len(signed) != size {
			t.Fatalf("%d bytes, %v", len(signed), err)
		}
		return signed
	}
	if c, err := anchor.OpenCheckpoint(noted(bound), l.key); err != nil || c.Size != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if found, err := anchor.Cosignatures(noted(bound), nil); err != nil || found != nil {
		t.Errorf("%+v, %v", found, err)
	}
	for name, read := range map[string]func(size int) error{
		"checkpoint":   func(over int) error { _, err := anchor.OpenCheckpoint(noted(bound+over), l.key); return err },
		"cosignatures": func(over int) error { _, err := anchor.Cosignatures(noted(bound+over), nil); return err },
		"proof":        func(over int) error { _, err := anchor.ParseProof(make([]byte, anchor.MaxProof+over)); return err },
		"answer": func(over int) error {
			_, err := anchor.VerifyTimestamp(make([]byte, anchor.MaxReply+over), nil, nil, nil)
			return err
		},
	} {
		for over := range 2 {
			if err := read(over); (err != nil && strings.Contains(err.Error(), "want at most")) != (over > 0) {
				t.Errorf("%s, %d over: %v", name, over, err)
			}
		}
	}
	hash := tlog.Hash{}.String() + "\n"
	for hashes, good := range map[int]bool{63: true, 64: false} {
		text := "c2sp.org/tlog-proof@v1\nindex 2\n" + strings.Repeat(hash, hashes) + "\nx"
		if p, err := anchor.ParseProof([]byte(text)); (err == nil) != good || good && len(p.Hashes) != hashes {
			t.Errorf("%d hashes: %v", hashes, err)
		}
	}
}

// A leaf index after the last leaf is in no log of that size.
func TestProofBeyondTheLogsSize(t *testing.T) {
	l := grown(t, 5)
	for index := int64(5); index < 7; index++ {
		proof := l.prove(t, 4, 5)
		proof.Index = index
		if _, err := proof.Verify(l.leaves[4], l.key); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("leaf %d of a log of 5", index)) {
			t.Errorf("leaf %d: %v", index, err)
		}
	}
}

// A checkpoint may be signed by any of a log's keys.
func TestOpenCheckpointBy(t *testing.T) {
	l := grown(t, 3)
	other := newLog(t)
	vkey, err := anchor.VerifierKey(origin, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, 32)).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if other.key, err = anchor.ParseVerifier(vkey); err != nil {
		t.Fatal(err)
	}
	signed := l.checkpoint(t, 3)
	for _, keys := range [][]note.Verifier{{l.key}, {other.key, l.key}, {l.key, other.key}} {
		if c, err := anchor.OpenCheckpointBy(signed, keys); err != nil || c.Size != 3 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if _, err := anchor.OpenCheckpointBy(signed, nil); err == nil || !strings.Contains(err.Error(), "no key to verify it by") {
		t.Errorf("by no key: %v", err)
	}
	// The error is that of the first key, which is the current one.
	misnamed := anchor.Checkpoint{Origin: "example.org/other", Size: 3}
	if signed, err = misnamed.Sign(l.signer); err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.OpenCheckpointBy(signed, []note.Verifier{l.key, other.key}); err == nil || !strings.Contains(err.Error(), "of the log") {
		t.Errorf("another log's: %v", err)
	}
}

func TestCheckpointsOfOthersAreRefused(t *testing.T) {
	l := grown(t, 3)
	signed := l.checkpoint(t, 3)
	other, err := anchor.VerifierKey(origin, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, 32)).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	key, err := anchor.ParseVerifier(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.OpenCheckpoint(signed, key); err == nil {
		t.Error("another key is accepted")
	}
	misnamed := anchor.Checkpoint{Origin: "example.org/other", Size: 3}
	text, err := misnamed.Sign(l.signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.OpenCheckpoint(text, l.key); err == nil || !strings.Contains(err.Error(), "of the log") {
		t.Errorf("another log's checkpoint: %v", err)
	}
	for _, text := range []string{"a\n1\n", "a\n01\nAAAA\n", origin + "\n1\nAAAA\n", origin + "\n-1\n" + tlog.Hash{}.String() + "\n"} {
		signed, err := note.Sign(&note.Note{Text: text}, l.signer)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := anchor.OpenCheckpoint(signed, l.key); err == nil {
			t.Errorf("%q was read as %+v", text, c)
		}
	}
	for _, name := range []string{"", "two words", "a+b"} {
		if _, err := anchor.NewSigner(name, logKey); err == nil {
			t.Errorf("the log's name %q is accepted", name)
		}
		if vkey, err := anchor.VerifierKey(name, logKey.Public().(ed25519.PublicKey)); err == nil {
			t.Errorf("the log's key %q is accepted", vkey)
		}
	}
}

func TestConsistency(t *testing.T) {
	l, forked := grown(t, 50), grown(t, 30)
	forked.add(t, leafOf(t, 999))
	for i := 31; i < 50; i++ {
		forked.add(t, leafOf(t, i))
	}
	open := func(l *testLog, size int) *anchor.Checkpoint {
		c, err := anchor.OpenCheckpoint(l.checkpoint(t, size), l.key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	prove := func(l *testLog, older, newer int) tlog.TreeProof {
		proof, err := tlog.ProveTree(int64(newer), int64(older), l)
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	for older := 1; older <= 50; older++ {
		if err := anchor.CheckConsistency(prove(l, older, 50), open(l, older), open(l, 50)); err != nil {
			t.Errorf("from %d: %v", older, err)
		}
	}
	if err := anchor.CheckConsistency(nil, open(l, 0), open(l, 50)); err != nil {
		t.Errorf("from nothing: %v", err)
	}
	other := open(l, 50)
	other.Origin = "elsewhere"
	for name, c := range map[string]struct {
		proof        tlog.TreeProof
		older, newer *anchor.Checkpoint
		want         string
	}{
		"rolled back":      {nil, open(l, 50), open(l, 40), "rolled back: it had 50 leaves and has 40"},
		"rewritten":        {prove(forked, 40, 50), open(l, 40), open(forked, 50), "rewritten"},
		"two of one size":  {nil, open(l, 50), open(forked, 50), "two roots"},
		"no proof":         {nil, open(l, 40), open(l, 50), "rewritten"},
		"of two logs":      {nil, open(l, 40), other, "two logs"},
		"same, a log more": {nil, other, open(l, 50), "two logs"},
	} {
		if err := anchor.CheckConsistency(c.proof, c.older, c.newer); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzParseProof(f *testing.F) {
	f.Add(grown(f, 5).prove(f, 2, 5).Text())
	l := newLog(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		proof, err := anchor.ParseProof(text)
		if err != nil {
			return
		}
		if _, err := proof.Verify([]byte("no leaf"), l.key); err == nil {
			t.Errorf("%q proves text that is no leaf", text)
		}
	})
}
