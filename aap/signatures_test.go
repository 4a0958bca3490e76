package aap

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// secret returns a distinct key pair for each number.
func secret(number byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = number
	return ed25519.NewKeyFromSeed(seed)
}

func public(id string, number byte) schema.Key {
	return schema.Key{KeyID: id, PublicKey: secret(number).Public().(ed25519.PublicKey)}
}

// registered returns cardText with registered keys, and with a commitment to tamper evidence
// where evidence is not empty.
func registered(t testing.TB, evidence string, keys ...schema.Key) string {
	t.Helper()
	var list []string
	for _, k := range keys {
		list = append(list, fmt.Sprintf(`{"key_id": %q, "algorithm": "Ed25519", "public_key": %q}`,
			k.KeyID, base64.StdEncoding.EncodeToString(k.PublicKey)))
	}
	commitment := `"queryable": false`
	if evidence != "" {
		commitment += `, "tamper_evidence": "` + evidence + `"`
	}
	return replace(t, cardText, `"queryable": false}`,
		commitment+`}, "extensions": {"plumbline": {"keys": [`+strings.Join(list, ",")+`]}}`)
}

// sign signs a card or trace.
func sign(t testing.TB, object, id string, number byte) string {
	t.Helper()
	signed, err := signature.Signed([]byte(object), id, secret(number))
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

func TestRegisterChecksTheSignature(t *testing.T) {
	own := registered(t, "", public("k1", 1), public("k2", 2))
	earlier, issuer := public("k0", 10), public("issuer", 11)
	for name, c := range map[string]struct {
		card    string
		trusted []schema.Key
		signer  string // empty: the card is refused
		self    bool
	}{
		"own key":                {sign(t, own, "k2", 2), nil, "k2", true},
		"own key among others":   {sign(t, own, "k1", 1), []schema.Key{earlier, issuer}, "k1", true},
		"key of an earlier card": {sign(t, own, "k0", 10), []schema.Key{earlier, issuer}, "k0", false},
		"issuer's key":           {sign(t, cardText, "issuer", 11), []schema.Key{earlier, issuer}, "issuer", false},
		"own key, known before":  {sign(t, own, "k1", 1), []schema.Key{public("k1", 1)}, "k1", false},
		"id used again":          {sign(t, own, "k1", 1), []schema.Key{public("k1", 10)}, "k1", true},
		"reformatted":            {strings.ReplaceAll(sign(t, own, "k1", 1), ",", " ,\n"), nil, "k1", true},
		"no keys":                {sign(t, cardText, "k1", 1), nil, "", false},
		"unknown id":             {sign(t, own, "k3", 1), nil, "", false},
		"other key":              {sign(t, own, "k1", 2), nil, "", false},
		"other content":          {strings.Replace(sign(t, own, "k1", 1), `"search"`, `"fly"`, 1), nil, "", false},
		"other number":           {strings.Replace(sign(t, own, "k1", 1), `500`, `501`, 1), nil, "", false},
		"keys exchanged":         {strings.Replace(sign(t, own, "k1", 1), `"k2"`, `"k9"`, 1), nil, "", false},
	} {
		compiled, err := Register([]byte(c.card), c.trusted...)
		if c.signer == "" {
			var refusal *schema.Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) != 1 || refusal.Faults[0].Pointer != "/signature" {
				t.Errorf("%s: got %v, want a fault at /signature", name, err)
			}
			continue
		}
		if err != nil || compiled.SignedBy == nil || compiled.SignedBy.KeyID != c.signer || compiled.SelfSigned != c.self {
			t.Errorf("%s: got %+v (%v)", name, compiled, err)
		}
	}
}

func TestRegisterTakesUnsignedCards(t *testing.T) {
	for _, card := range []string{cardText, registered(t, "signed", public("k1", 1))} {
		if compiled, err := Register([]byte(card), public("k0", 10)); err != nil || compiled.SignedBy != nil || compiled.SelfSigned {
			t.Errorf("got %+v (%v)", compiled, err)
		}
	}
}

func TestTraceSignatures(t *testing.T) {
	keys := []schema.Key{public("k1", 1), public("k2", 2)}
	foreign := replace(t, traceText, `"trace_id"`, `"signature": "by another scheme", "trace_id"`)
	null := replace(t, traceText, `"trace_id"`, `"signature": null, "trace_id"`)
	good := sign(t, traceText, "k2", 2)
	plain, keyed := registered(t, ""), registered(t, "", keys...)
	signed, promised := registered(t, "signed", keys...), registered(t, "signed")
	for name, c := range map[string]struct{ card, trace, want string }{
		"unsigned":                         {plain, traceText, ""},
		"unsigned, keys":                   {keyed, traceText, ""},
		"unsigned, committed":              {signed, traceText, "MISSING_SIGNATURE"},
		"unsigned, committed to a chain":   {registered(t, "merkle", keys...), traceText, ""},
		"unsigned with another member":     {signed, replace(t, traceText, `"trace_id"`, `"x": 1, "trace_id"`), "MISSING_SIGNATURE"},
		"null, committed":                  {signed, null, "MISSING_SIGNATURE"},
		"null":                             {keyed, null, ""},
		"signed":                           {keyed, good, ""},
		"signed, committed":                {signed, good, ""},
		"signed and reformatted":           {signed, strings.ReplaceAll(good, ": ", "  :\n "), ""},
		"escaped otherwise":                {signed, strings.Replace(good, `"honesty"`, `"\u0068onesty"`, 1), ""},
		"changed":                          {keyed, replace(t, good, `"confidence": 0.8`, `"confidence": 0.9`), "BAD_SIGNATURE"},
		"added to":                         {keyed, replace(t, good, `"trace_id"`, `"note": 1, "trace_id"`), "BAD_SIGNATURE"},
		"by another key":                   {keyed, sign(t, traceText, "k1", 2), "BAD_SIGNATURE"},
		"by an unknown key":                {keyed, sign(t, traceText, "k3", 3), "BAD_SIGNATURE"},
		"malformed":                        {keyed, foreign, "BAD_SIGNATURE"},
		"malformed, committed":             {promised, foreign, "BAD_SIGNATURE"},
		"committed without keys":           {promised, good, "BAD_SIGNATURE"},
		"number that cannot be signed":     {keyed, replace(t, good, `"trace_id"`, `"n": 9007199254740993, "trace_id"`), "BAD_SIGNATURE"},
		"nothing to check it by":           {plain, good, "unchecked_signature"},
		"another scheme, nothing to check": {plain, foreign, "unchecked_signature"},
	} {
		var v schema.Verdict
		judge(t).Verify(admitted(t, c.trace), compiled(t, c.card), Facts{}, now, &v)
		if got := remarks(&v); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		for _, finding := range v.Findings {
			if finding.Field != "signature" || finding.Description == "" {
				t.Errorf("%s: %+v", name, finding)
			}
		}
	}
}

func TestBadSignatureIsDenied(t *testing.T) {
	card := compiled(t, registered(t, "signed", public("k1", 1)))
	var v schema.Verdict
	j := judge(t)
	for _, c := range []struct {
		trace    string
		severity schema.Severity
		want     schema.Recommendation
	}{
		{traceText, schema.SeverityMedium, schema.Review},
		{sign(t, traceText, "k1", 2), schema.SeverityCritical, schema.Deny},
	} {
		j.Verify(admitted(t, c.trace), card, Facts{}, now, &v)
		if len(v.Findings) != 1 || v.Findings[0].Severity != c.severity || v.RecommendedAction != c.want || !v.Verified {
			t.Errorf("got %+v", v)
		}
	}
	if !strings.Contains(strings.Join(v.Metadata.ChecksPerformed, " "), "signature") {
		t.Errorf("checks %v", v.Metadata.ChecksPerformed)
	}
}

// An error that quotes the trace must not make the verdict large.
func TestBadSignatureIsDescribedBriefly(t *testing.T) {
	block := `"signature": {"algorithm": "` + strings.Repeat("x", 1<<16) + `", "value": [], "key_id": {}}, "trace_id"`
	var v schema.Verdict
	judge(t).Verify(admitted(t, replace(t, traceText, `"trace_id"`, block)), compiled(t, registered(t, "", public("k1", 1))), Facts{}, now, &v)
	if len(v.Findings) != 1 || len(v.Findings[0].Description) > 1<<10 {
		t.Errorf("got %+v", v.Findings)
	}
}

// An unsigned trace with an unknown member costs no additional allocation.
func TestUnsignedTracesCostNothing(t *testing.T) {
	j, card := judge(t), compiled(t, registered(t, "", public("k1", 1)))
	trace := admitted(t, replace(t, traceText, `"trace_id"`, `"x": 1, "trace_id"`))
	var v schema.Verdict
	j.Verify(trace, card, Facts{}, now, &v)
	j.trace, j.card, j.verdict = trace, card, &v
	if allocations := testing.AllocsPerRun(100, j.checkSignature); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// BenchmarkSigned is BenchmarkVerify with a signed trace.
func BenchmarkSigned(b *testing.B) {
	j, err := NewJudge(DefaultThresholds())
	if err != nil {
		b.Fatal(err)
	}
	card := compiled(b, registered(b, schema.TamperSigned, public("k1", 1)))
	trace := admitted(b, sign(b, traceText, "k1", 1))
	var v schema.Verdict
	b.ReportAllocs()
	for b.Loop() {
		j.Verify(trace, card, Facts{}, now, &v)
	}
	if len(v.Findings) != 0 {
		b.Fatalf("got %+v", v.Findings)
	}
}
