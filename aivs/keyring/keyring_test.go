package keyring_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// day returns the n-th day of the tests.
func day(n int) time.Time { return start.AddDate(0, 0, n) }

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(seed byte) ed25519.PublicKey { return private(seed).Public().(ed25519.PublicKey) }

func add(t *testing.T, r *keyring.Ring, a keyring.Addition) *keyring.Ring {
	t.Helper()
	grown, err := r.Add(a)
	if err != nil {
		t.Fatal(err)
	}
	return grown
}

// rotated returns a ring of n session keys, seeds 1 to n: key i is valid from day 10i to an hour
// after the beginning of the next one.
func rotated(t *testing.T, n int) *keyring.Ring {
	t.Helper()
	r := new(keyring.Ring)
	for i := 1; i <= n; i++ {
		a := keyring.Addition{Purpose: keyring.Session, Key: private(byte(i)), IssuedAt: day(10 * i), NotBefore: day(10 * i)}
		if i > 1 {
			a.Previous, a.Retire = private(byte(i-1)), day(10*i).Add(time.Hour)
		}
		r = add(t, r, a)
	}
	return r
}

func TestEveryPinLeadsToEveryKey(t *testing.T) {
	const keys = 5
	r, err := keyring.Parse(rotated(t, keys).Text())
	if err != nil {
		t.Fatal(err)
	}
	for pin := byte(1); pin <= keys; pin++ {
		for key := byte(1); key <= keys; key++ {
			if err := r.Accept([]ed25519.PublicKey{public(pin)}, public(key), keyring.Session, day(10*int(key)+5)); err != nil {
				t.Errorf("pinned %d, signed by %d: %v", pin, key, err)
			}
		}
	}
	if current, ok := r.Current(keyring.Session); !ok || current.KeyID != aivs.KeyID(public(keys)) {
		t.Errorf("current is %v", current)
	}
}

func TestValidity(t *testing.T) {
	r := rotated(t, 2)
	pins := []ed25519.PublicKey{public(1)}
	cases := []struct {
		name string
		key  byte
		at   time.Time
		want error
	}{
		{"first second", 1, day(10), nil},
		{"before the first", 1, day(10).Add(-time.Second), keyring.ErrEarly},
		{"last second", 1, day(20).Add(time.Hour), nil},
		{"after the last", 1, day(20).Add(time.Hour + time.Second), keyring.ErrLate},
		{"both overlap", 2, day(20), nil},
		{"no end", 2, day(5000), nil},
		{"new key, old date", 2, day(20).Add(-time.Second), keyring.ErrEarly},
		{"foreign key", 9, day(10), keyring.ErrUnreached},
	}
	for _, c := range cases {
		if err := r.Accept(pins, public(c.key), keyring.Session, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := r.Accept([]ed25519.PublicKey{public(9)}, public(1), keyring.Session, day(10)); !errors.Is(err, keyring.ErrUnreached) {
		t.Errorf("a pin that is not listed: %v", err)
	}
	if err := r.Accept(nil, public(1), keyring.Session, day(10)); !errors.Is(err, keyring.ErrUnreached) {
		t.Errorf("no pin: %v", err)
	}
}

func TestPurpose(t *testing.T) {
	r := add(t, rotated(t, 2), keyring.Addition{Purpose: keyring.Micro, Key: private(50), IssuedAt: day(30), NotBefore: day(30)})
	session, micro := []ed25519.PublicKey{public(1)}, []ed25519.PublicKey{public(50)}
	if err := r.Accept(session, public(50), keyring.Session, day(31)); !errors.Is(err, keyring.ErrPurpose) {
		t.Errorf("a micro key for a bundle: %v", err)
	}
	if err := r.Accept(micro, public(2), keyring.Session, day(31)); !errors.Is(err, keyring.ErrPurpose) {
		t.Errorf("a pinned micro key that leads to a session key: %v", err)
	}
	if err := r.Accept(micro, public(50), keyring.Micro, day(31)); err != nil {
		t.Errorf("a micro key for Micro: %v", err)
	}
	for _, twice := range []keyring.Purpose{keyring.Micro, keyring.Session} {
		_, err := r.Add(keyring.Addition{Purpose: twice, Key: private(2), Previous: map[keyring.Purpose]ed25519.PrivateKey{keyring.Micro: private(50), keyring.Session: private(2)}[twice],
			IssuedAt: day(40), NotBefore: day(40), Retire: day(40)})
		if err == nil || !strings.Contains(err.Error(), "a key has one purpose") {
			t.Errorf("a session key again, for %s: %v", twice, err)
		}
	}
}

func TestAddNeedsTheKeyBefore(t *testing.T) {
	r := rotated(t, 2)
	for _, previous := range []ed25519.PrivateKey{nil, private(1), private(9)} {
		_, err := r.Add(keyring.Addition{Purpose: keyring.Session, Key: private(3), Previous: previous, IssuedAt: day(30), NotBefore: day(30), Retire: day(30)})
		if err == nil || !strings.Contains(err.Error(), "must sign") {
			t.Errorf("added with the previous key %v: %v", previous, err)
		}
	}
	if _, err := r.Add(keyring.Addition{Purpose: keyring.Session, Previous: private(2), IssuedAt: day(30), NotBefore: day(30)}); err == nil {
		t.Error("no key was added")
	}
}

// The list refuses all changes by an attacker who has no key, or only one of another purpose.
func TestForgedLists(t *testing.T) {
	good := add(t, rotated(t, 3), keyring.Addition{Purpose: keyring.Micro, Key: private(50), IssuedAt: day(40), NotBefore: day(40)})
	lines := bytes.SplitAfter(good.Text(), []byte("\n"))[:4]
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	replace := func(old, new string) []byte { return bytes.Replace(good.Text(), []byte(old), []byte(new), 1) }
	cases := map[string]struct {
		text []byte
		want string
	}{
		"empty":             {nil, "empty"},
		"reordered":         {join(lines[0], lines[2], lines[1], lines[3]), "line 2: version 3, want 2"},
		"first line gone":   {join(lines[1:]...), "line 1: version 2, want 1"},
		"middle gone":       {join(lines[0], lines[2], lines[3]), "line 2: version 3"},
		"repeated":          {join(lines[0], lines[0]), "line 2: version 1, want 2"},
		"cut off":           {good.Text()[:len(good.Text())-1], "line 4: not written as a key list"},
		"no list":           {[]byte("{}\n"), "line 1: "},
		"not JSON":          {append(good.Text(), "x\n"...), "line 5: "},
		"unknown member":    {replace(`{"type"`, `{"more":1,"type"`), "line 1: "},
		"duplicate member":  {replace(`{"type"`, `{"version":1,"type"`), "line 1: "},
		"white space":       {replace(`{"type"`, `{ "type"`), "line 1: not written as a key list"},
		"other type":        {replace("plumbline-keys/1", "plumbline-keys/2"), "line 1: its type"},
		"times moved":       {replace(`"not_before":"2026-01-11`, `"not_before":"2026-01-10`), "line 1: signature 1 is not by"},
		"purpose changed":   {replace(`"purpose":"session"`, `"purpose":"micro"`), "line 1: signature 1 is not by"},
		"unknown purpose":   {replace(`"purpose":"session"`, `"purpose":"any"`), "line 1: "},
		"key exchanged":     {replace(fmt.Sprintf("%x", public(1)), fmt.Sprintf("%x", public(9))), "line 1: key_id"},
		"upper case":        {replace(fmt.Sprintf("%x", public(1)), fmt.Sprintf("%X", public(1))), "line 1: "},
		"history rewritten": {join(lines[0], bytes.Replace(lines[1], []byte(`"not_before":"2026-01-11`), []byte(`"not_before":"2025-01-11`), 1)), "line 2: "},
	}
	for name, c := range cases {
		if _, err := keyring.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, size := range []int{keyring.MaxBytes, keyring.MaxBytes + 1} {
		_, err := keyring.Parse(make([]byte, size))
		if err == nil || strings.Contains(err.Error(), "want at most") != (size > keyring.MaxBytes) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// signed writes a list with the signatures of the given keys, as a forger would.
func signed(t *testing.T, r *keyring.Ring, change func(*keyring.List), keys ...ed25519.PrivateKey) []byte {
	t.Helper()
	l := r.Newest()
	l.Version, l.Signatures = l.Version+1, nil
	change(&l)
	bare, err := json.Marshal(&l)
	if err != nil {
		t.Fatal(err)
	}
	canonical := canonicalize(t, bare)
	for _, key := range keys {
		value := ed25519.Sign(key, append([]byte("plumbline-keys/1\n"), canonical...))
		l.Signatures = append(l.Signatures, keyring.Signature{
			KeyID: aivs.KeyID(key.Public().(ed25519.PublicKey)), Value: base64.StdEncoding.EncodeToString(value)})
	}
	line, err := json.Marshal(&l)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(r.Text(), line, []byte("\n"))
}

// The holder of one key cannot add a key of another purpose, or of a purpose whose current key is
// another one, extend the period of keys, or change existing entries.
func TestKeyCannotChangeOtherPurposes(t *testing.T) {
	r := add(t, rotated(t, 2), keyring.Addition{Purpose: keyring.Micro, Key: private(50), IssuedAt: day(25), NotBefore: day(25)})
	entry := func(seed byte, purpose keyring.Purpose) keyring.Key {
		return keyring.Key{KeyID: aivs.KeyID(public(seed)), PublicKey: fmt.Sprintf("%x", public(seed)), Purpose: purpose, NotBefore: day(30)}
	}
	cases := []struct {
		name   string
		change func(*keyring.List)
		keys   []ed25519.PrivateKey
		want   string // empty: the line is valid
	}{
		{"as it should be", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, ""},
		{"a micro key hands over sessions", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(50), private(3)}, "signature 1 is not by session key"},
		{"a retired key hands over", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(1), private(3)}, "signature 1 is not by session key"},
		{"the new key alone", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(3)}, "1 signatures, want 2"},
		{"a key that nobody holds", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(2)}, "signature 2 is not by session key"},
		{"the one before has no end", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "has no end"},
		{"a key's end is taken away", func(l *keyring.List) {
			l.Keys[0].NotAfter, l.Keys[1].NotAfter = time.Time{}, day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "validity was extended"},
		{"a key's end is put off", func(l *keyring.List) {
			l.Keys[0].NotAfter, l.Keys[1].NotAfter = day(400), day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "validity was extended"},
		{"a key's end is sooner: it was stolen", func(l *keyring.List) {
			l.Keys[0].NotAfter, l.Keys[1].NotAfter = day(12), day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, ""},
		{"another purpose's key is ended", func(l *keyring.List) {
			l.Keys[1].NotAfter, l.Keys[2].NotAfter = day(30), day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "was ended by a line that adds a session key"},
		{"a key is dropped", func(l *keyring.List) {
			l.Keys = append(l.Keys[1:], entry(3, keyring.Session), entry(4, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(4)}, "was changed"},
		{"two keys at once", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session), entry(4, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(4)}, "5 keys, want the 3"},
		{"issued earlier", func(l *keyring.List) {
			l.IssuedAt = day(1)
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "issued before"},
		{"issued between two seconds", func(l *keyring.List) {
			l.IssuedAt = day(30).Add(time.Millisecond)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "issued_at is not a time in UTC, to the second"},
		{"issued in another zone", func(l *keyring.List) {
			l.IssuedAt = day(30).In(time.FixedZone("", 3600))
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "issued_at is not a time in UTC, to the second"},
		{"issued at no time", func(l *keyring.List) {
			l.IssuedAt = time.Time{}
			l.Keys = append(l.Keys, entry(3, keyring.Session))
		}, []ed25519.PrivateKey{private(2), private(3)}, "issued_at is not a time in UTC, to the second"},
		{"begins between two seconds", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session))
			l.Keys[3].NotBefore = day(30).Add(time.Millisecond)
		}, []ed25519.PrivateKey{private(2), private(3)}, "its validity is not in UTC, to the second"},
		{"ends in another zone", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session))
			l.Keys[3].NotAfter = day(40).In(time.FixedZone("", 3600))
		}, []ed25519.PrivateKey{private(2), private(3)}, "its validity is not in UTC, to the second"},
		{"a key of 31 bytes", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session))
			l.Keys[3].PublicKey = l.Keys[3].PublicKey[2:]
		}, []ed25519.PrivateKey{private(2), private(3)}, "is not 64 hexadecimal digits"},
		{"a key in other digits", func(l *keyring.List) {
			l.Keys = append(l.Keys, entry(3, keyring.Session))
			l.Keys[3].PublicKey = strings.Repeat("xy", 32)
		}, []ed25519.PrivateKey{private(2), private(3)}, "is not 64 hexadecimal digits"},
		{"no beginning", func(l *keyring.List) {
			l.Keys[1].NotAfter = day(30)
			l.Keys = append(l.Keys, entry(3, keyring.Session))
			l.Keys[3].NotBefore = time.Time{}
		}, []ed25519.PrivateKey{private(2), private(3)}, "has no beginning"},
	}
	for _, c := range cases {
		_, err := keyring.Parse(signed(t, r, c.change, c.keys...))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A signature has one accepted text and names its own key.
func TestSignaturesHaveOneForm(t *testing.T) {
	good := rotated(t, 1).Newest()
	value := good.Signatures[0].Value
	for name, change := range map[string]func(*keyring.Signature){
		"another key's id":   func(s *keyring.Signature) { s.KeyID = aivs.KeyID(public(9)) },
		"a line feed inside": func(s *keyring.Signature) { s.Value = value[:40] + "\n" + value[40:] },
		"text behind it":     func(s *keyring.Signature) { s.Value = value + "\n!" },
		"bits that are lost": func(s *keyring.Signature) { s.Value = value[:85] + string(value[85]+1) + "==" },
	} {
		l := good
		l.Signatures = slices.Clone(l.Signatures)
		change(&l.Signatures[0])
		line, err := json.Marshal(&l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.Parse(append(line, '\n')); err == nil || !strings.Contains(err.Error(), "signature 1 is not by session key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that is ended before its beginning was valid for its first second alone.
func TestKeyCannotEndBeforeItBegins(t *testing.T) {
	r := add(t, rotated(t, 1), keyring.Addition{Purpose: keyring.Session, Key: private(2), Previous: private(1),
		IssuedAt: day(10), NotBefore: day(10), Retire: day(3)})
	if k, listed := r.Find(public(1)); !listed || !k.NotAfter.Equal(day(10)) {
		t.Errorf("%+v", k)
	}
}

// A key that is not listed is reported as such.
func TestUnlistedKeysAreNotFound(t *testing.T) {
	r := rotated(t, 2)
	if k, ok := r.Current(keyring.Log); ok {
		t.Errorf("a key of the log: %+v", k)
	}
	if k, ok := r.Find(public(9)); ok {
		t.Errorf("a stranger's key: %+v", k)
	}
	if k, ok := r.Find(public(2)); !ok || k.KeyID != aivs.KeyID(public(2)) {
		t.Errorf("the second key: %+v, %t", k, ok)
	}
}

// A key that is older than the list has no beginning; the keys after it have one.
func TestAdoptedKey(t *testing.T) {
	r := add(t, new(keyring.Ring), keyring.Addition{Purpose: keyring.Session, Key: private(1), IssuedAt: day(10)})
	if err := r.Accept([]ed25519.PublicKey{public(1)}, public(1), keyring.Session, day(-1000)); err != nil {
		t.Error(err)
	}
	if bytes.Contains(r.Text(), []byte("not_before")) {
		t.Errorf("an unknown time: %s", r.Text())
	}
}

func TestJWKS(t *testing.T) {
	r := add(t, rotated(t, 2), keyring.Addition{Purpose: keyring.Micro, Key: private(50), IssuedAt: day(30), NotBefore: day(30)})
	text, err := r.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []struct {
			Kty, Crv, Kid, X, Use string
			Nbf, Exp              int64
		}
	}
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	want := map[string]byte{aivs.KeyID(public(1)): 1, aivs.KeyID(public(2)): 2, "aivs-session-key": 2}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Use != "sig" || !public(want[k.Kid]).Equal(ed25519.PublicKey(x)) {
			t.Errorf("%+v: %v", k, err)
		}
		delete(want, k.Kid)
	}
	if len(want) > 0 || len(set.Keys) != 3 || set.Keys[0].Exp != day(20).Add(time.Hour).Unix() || set.Keys[1].Nbf != day(20).Unix() {
		t.Errorf("%s", text)
	}
}
