package anchor_test

import (
	"bytes"
	"crypto/x509"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
)

var signature = bytes.Repeat([]byte{7}, 64)

func trusted(t *testing.T, a *anchortest.Authority) []*x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(a.Roots)
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := anchor.Authorities(text)
	if err != nil {
		t.Fatal(err)
	}
	return certificates
}

func stamp(t *testing.T, a *anchortest.Authority, nonce *big.Int) []byte {
	t.Helper()
	query, err := anchor.Query(signature, nonce)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := a.Reply(query)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestTimestampOfOpenSSL(t *testing.T) {
	a := anchortest.New(t)
	nonce := big.NewInt(1 << 40)
	reply := stamp(t, a, nonce)
	at, err := anchor.VerifyTimestamp(reply, signature, trusted(t, a), nonce)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(at); age < -time.Second || age > time.Hour {
		t.Errorf("stamped %s", at)
	}
	if err := a.Verify(reply, signature); err != nil {
		t.Errorf("openssl: %v", err)
	}
}

func TestTimestampIsRefused(t *testing.T) {
	a := anchortest.New(t)
	nonce := big.NewInt(1 << 40)
	reply, other := stamp(t, a, nonce), anchortest.New(t)
	cases := map[string]struct {
		reply, signature []byte
		trusted          []*x509.Certificate
		nonce            *big.Int
		want             string
	}{
		"another signature": {reply, bytes.Repeat([]byte{8}, 64), trusted(t, a), nil, "hashed messages don't match"},
		"another authority": {reply, signature, trusted(t, other), nil, "certificate"},
		"another nonce":     {reply, signature, trusted(t, a), big.NewInt(5), "nonce"},
		"nobody is trusted": {reply, signature, nil, nil, "no root certificates"},
		"cut off":           {reply[:len(reply)/2], signature, trusted(t, a), nil, "time stamp: "},
		"no answer":         {[]byte("nothing"), signature, trusted(t, a), nil, "time stamp: "},
		"endless":           {make([]byte, anchor.MaxReply+1), signature, trusted(t, a), nil, "want at most"},
	}
	for name, c := range cases {
		if _, err := anchor.VerifyTimestamp(c.reply, c.signature, c.trusted, c.nonce); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// No change of a bit makes an answer valid with another time or for another signature. Only bits
// that the authority's signature does not cover can be changed.
func TestTimestampBitsCount(t *testing.T) {
	a := anchortest.New(t)
	reply, roots := stamp(t, a, nil), trusted(t, a)
	at, err := anchor.VerifyTimestamp(reply, signature, roots, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reply {
		changed := bytes.Clone(reply)
		changed[i] ^= 1
		if other, err := anchor.VerifyTimestamp(changed, signature, roots, nil); err == nil && !other.Equal(at) {
			t.Errorf("byte %d changed the time: %s, want %s", i, other, at)
		}
	}
}

// A stamp stays valid after its authority's certificate has expired: the authority of
// testdata/expired.tsr had a certificate for some seconds.
func TestTimestampOfACertificateThatHasExpired(t *testing.T) {
	text, err := os.ReadFile("testdata/expired.pem")
	if err != nil {
		t.Fatal(err)
	}
	roots, err := anchor.Authorities(text)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := os.ReadFile("testdata/expired.tsr")
	if err != nil {
		t.Fatal(err)
	}
	at, err := anchor.VerifyTimestamp(reply, signature, roots, nil)
	if err != nil || at.After(roots[0].NotAfter) || !roots[0].NotAfter.Before(time.Now()) {
		t.Errorf("stamped %s by a certificate until %s: %v", at, roots[0].NotAfter, err)
	}
}

// A stamp given after the certificate had expired is invalid.
func TestTimestampAfterTheCertificateExpired(t *testing.T) {
	a := anchortest.NewValid(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	if at, err := anchor.VerifyTimestamp(stamp(t, a, nil), signature, trusted(t, a), nil); err == nil || !strings.Contains(err.Error(), "certificate validity") {
		t.Errorf("stamped %s: %v", at, err)
	}
}

func TestAuthorities(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no certificate": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"not DER": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if _, err := anchor.Authorities([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Other contents of a file of certificates, such as a key, are ignored.
func TestAuthoritiesIgnoresOtherPEMBlocks(t *testing.T) {
	text, err := os.ReadFile("testdata/expired.pem")
	if err != nil {
		t.Fatal(err)
	}
	found, err := anchor.Authorities(append([]byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), text...))
	if err != nil || len(found) == 0 {
		t.Errorf("%d certificates, %v", len(found), err)
	}
}

func FuzzVerifyTimestamp(f *testing.F) {
	reply, err := os.ReadFile("testdata/expired.tsr")
	if err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile("testdata/expired.pem")
	if err != nil {
		f.Fatal(err)
	}
	roots, err := anchor.Authorities(text)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reply)
	f.Fuzz(func(t *testing.T, reply []byte) {
		if at, err := anchor.VerifyTimestamp(reply, []byte("another signature"), roots, nil); err == nil {
			t.Errorf("the stamp %s is accepted for another signature", at)
		}
	})
}

// TestStampTime checks the time of a stamp against the export and the end of the key.
func TestStampTime(t *testing.T) {
	exported := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	end := exported.Add(24 * time.Hour)
	for _, c := range []struct {
		name    string
		stamped time.Time
		end     time.Time
		good    bool
	}{
		{"at once", exported.Add(time.Second), end, true},
		{"hours later, the authority was away", exported.Add(20 * time.Hour), end, true},
		{"within the key's last second", end.Add(time.Second - 1), end, true},
		{"in the second after", end.Add(time.Second), end, false},
		{"years later, the key has no end", exported.AddDate(5, 0, 0), time.Time{}, true},
		{"before the export, as far as clocks differ", exported.Add(-anchor.ClockSkew), end, true},
		{"before the export", exported.Add(-anchor.ClockSkew - time.Second), end, false},
		{"in another zone", end.Add(time.Second).In(time.FixedZone("", 3600)), end, false},
	} {
		if err := anchor.CheckStampTime(c.stamped, exported, c.end); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := anchor.CheckStampTime(exported, time.Time{}, time.Time{}); err != nil {
		t.Errorf("a bundle without a time: %v", err)
	}
}
