package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// secret is the key of RFC 8032, section 7.1, test 1.
func secret(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	seed, err := hex.DecodeString("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func keys(t testing.TB) []schema.Key {
	t.Helper()
	return []schema.Key{{KeyID: "k1", PublicKey: secret(t).Public().(ed25519.PublicKey)}}
}

// The value was computed with OpenSSL over the canonical form.
const (
	known      = `{"zero": -0.0, "rate":1e-1, "note":"\u00e9\u20ac\u000F", "ids":["b","a"], "amount":1E21}`
	knownForm  = `{"amount":1e+21,"ids":["b","a"],"note":"é€\u000f","rate":0.1,"zero":0}`
	knownValue = "S4Vh3KYUhBnM7leWLyUQ6LARFrvNaiYa9u/bdcVxMroUr9MG2cKbkuibthIq55ZI6ItrkVaSXi0g+APh+CS/DA=="
)

func TestKnownAnswer(t *testing.T) {
	payload, err := Payload([]byte(known))
	if err != nil || string(payload) != knownForm {
		t.Fatalf("signed form %s (%v), want %s", payload, err, knownForm)
	}
	s, err := Sign([]byte(known), "k1", secret(t))
	if want := (schema.Signature{Algorithm: "Ed25519", Value: knownValue, KeyID: "k1"}); err != nil || s != want {
		t.Errorf("got %+v (%v), want %+v", s, err, want)
	}
	if err := Verify([]byte(known), s, keys(t)); err != nil {
		t.Error(err)
	}
}

func TestSignedFormExcludesTheSignature(t *testing.T) {
	s, err := Sign([]byte(known), "k1", secret(t))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := Attach([]byte(known), s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Attach(signed, s)
	if err != nil || !bytes.Equal(again, signed) {
		t.Errorf("attached twice: %s (%v)", again, err)
	}
	escaped := bytes.Replace(signed, []byte(`"signature"`), []byte(`"\u0073ignature"`), 1)
	first := []byte(strings.Replace(known, `{`, `{"signature" : {"any": [1]} , `, 1))
	for _, object := range [][]byte{signed, escaped, first} {
		if err := Verify(object, s, keys(t)); err != nil {
			t.Errorf("%s: %v", object, err)
		}
	}
	inner := []byte(strings.Replace(known, `["b","a"]`, `["b","a",{"signature":1}]`, 1))
	if err := Verify(inner, s, keys(t)); !errors.Is(err, ErrWrong) {
		t.Errorf("a member of an inner object counts: got %v", err)
	}
}

func TestVerifyErrors(t *testing.T) {
	good, err := Sign([]byte(known), "k1", secret(t))
	if err != nil {
		t.Fatal(err)
	}
	other := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	reused := append([]schema.Key{{KeyID: "k1", PublicKey: other}}, keys(t)...)
	with := func(change func(*schema.Signature)) schema.Signature {
		s := good
		change(&s)
		return s
	}
	long := "SIG" + knownValue[3:]
	for name, c := range map[string]struct {
		object string
		s      schema.Signature
		keys   []schema.Key
		want   error
	}{
		"right":                   {known, good, keys(t), nil},
		"key id used twice":       {known, good, reused, nil},
		"other content":           {`{}`, good, keys(t), ErrWrong},
		"other signature":         {known, with(func(s *schema.Signature) { s.Value = long }), keys(t), ErrWrong},
		"other key of that id":    {known, good, reused[:1], ErrWrong},
		"unknown key id":          {known, with(func(s *schema.Signature) { s.KeyID = "k2" }), keys(t), ErrUnknownKey},
		"no keys":                 {known, good, nil, ErrUnknownKey},
		"key of another length":   {known, good, []schema.Key{{KeyID: "k1", PublicKey: other[:31]}}, ErrUnknownKey},
		"algorithm in lower case": {known, with(func(s *schema.Signature) { s.Algorithm = "ed25519" }), keys(t), ErrMalformed},
		"no algorithm":            {known, with(func(s *schema.Signature) { s.Algorithm = "" }), keys(t), ErrMalformed},
		"without padding":         {known, with(func(s *schema.Signature) { s.Value = strings.TrimRight(knownValue, "=") }), keys(t), ErrMalformed},
		"line break":              {known, with(func(s *schema.Signature) { s.Value = knownValue[:40] + "\n" + knownValue[40:] }), keys(t), ErrMalformed},
		"stray bits":              {known, with(func(s *schema.Signature) { s.Value = strings.Replace(knownValue, "DA==", "DB==", 1) }), keys(t), ErrMalformed},
		"URL alphabet":            {known, with(func(s *schema.Signature) { s.Value = strings.ReplaceAll(knownValue, "/", "_") }), keys(t), ErrMalformed},
		"63 bytes":                {known, with(func(s *schema.Signature) { s.Value = base64.StdEncoding.EncodeToString(make([]byte, 63)) }), keys(t), ErrMalformed},
		"no object":               {`[1]`, good, keys(t), ErrUnsignable},
		"broken object":           {`{"a":1`, good, keys(t), ErrUnsignable},
		"name twice":              {`{"a":1,"a":2}`, good, keys(t), ErrUnsignable},
		"deep inside twice":       {`{"a":[{"b":1,"b":2}]}`, good, keys(t), ErrUnsignable},
	} {
		if err := Verify([]byte(c.object), c.s, c.keys); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		object, keyID string
		key           ed25519.PrivateKey
	}{
		"no object": {`"text"`, "k1", secret(t)},
		"no key id": {`{}`, "", secret(t)},
		"long id":   {`{}`, strings.Repeat("k", schema.MaxIDBytes+1), secret(t)},
		"no key":    {`{}`, "k1", nil},
		"a seed":    {`{}`, "k1", secret(t)[:32]},
	} {
		if s, err := Sign([]byte(c.object), c.keyID, c.key); err == nil {
			t.Errorf("%s: signed as %+v", name, s)
		}
	}
	if _, err := Sign([]byte(`{}`), strings.Repeat("k", schema.MaxIDBytes), secret(t)); err != nil {
		t.Errorf("the longest key id: %v", err)
	}
}

// Two integers with the same canonical form must not both be signable.
func TestIntegersThatAFloatCannotHold(t *testing.T) {
	for number, signable := range map[string]bool{
		"9007199254740992": true, "9007199254740993": false, "9007199254740994": true, "-9007199254740993": false,
		"12345678901234567890": false, "12345678901234567000": true, "1000000000000000000000000": true,
		"0.1": true, "0.10": true, "0.10000000000000001": true, "333333333.33333329": true, "9007199254740993.0": true,
		"0": true, "-0": true, "0.000": true, "0e99": true, "1E+2": true, "1e22": true, "100": true, "5e-324": true, "1e-400": true,
		"1e400": false, "-1E400": false, "1" + strings.Repeat("0", 309): false,
	} {
		_, err := Payload([]byte(`{"a":{"n":[` + number + `]}}`))
		if signable != (err == nil) || !signable && !errors.Is(err, ErrUnsignable) {
			t.Errorf("%s: %v", number, err)
		}
		if !signable && !strings.Contains(err.Error(), "/a/n/0") {
			t.Errorf("%s: the error does not say where: %v", number, err)
		}
	}
}

// The signed form is the one in RFC 8785's test data.
func TestSignedFormOfTheTestData(t *testing.T) {
	folder := published.Path(t, "conformance/jcs")
	inputs, err := filepath.Glob(filepath.Join(folder, "input", "*.json"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, path := range inputs {
		input, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		output, err := os.ReadFile(filepath.Join(folder, "output", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"of":` + strings.TrimSpace(string(output)) + `}`
		if got, err := Payload([]byte(`{"of": ` + string(input) + `}`)); err != nil || string(got) != want {
			t.Errorf("%s: got\n%s (%v), want\n%s", filepath.Base(path), got, err, want)
		}
	}
}

func TestOf(t *testing.T) {
	block := func(text string) schema.Members {
		return schema.Members{{Name: "other", Value: []byte(`1`)}, {Name: Member, Value: []byte(text)}}
	}
	s, err := Of(block(`{"key_id": "k1", "value": "` + knownValue + `", "algorithm": "Ed25519", "added": [1]}`))
	if err != nil || s.KeyID != "k1" || s.Value != knownValue {
		t.Errorf("got %+v (%v)", s, err)
	}
	for _, members := range []schema.Members{nil, block("null")} {
		if _, err := Of(members); !errors.Is(err, ErrMissing) {
			t.Errorf("%v: got %v", members, err)
		}
	}
	for _, text := range []string{`"` + knownValue + `"`, `{}`, `[]`, `{"key_id":"","value":"` + knownValue + `","algorithm":"Ed25519"}`,
		`{"key_id":"k","value":"","algorithm":"Ed25519"}`, `{"key_id":"k","value":"` + knownValue + `","algorithm":"RS256"}`,
		`{"key_id":7,"value":"` + knownValue + `","algorithm":"Ed25519"}`} {
		if _, err := Of(block(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// anyValue draws JSON values that a float represents exactly.
func anyValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	switch rapid.IntRange(-2, kinds-1).Draw(t, "kind") {
	case -2:
		return nil
	case -1:
		return rapid.Bool().Draw(t, "bool")
	case 0:
		return rapid.String().Draw(t, "text")
	case 1:
		whole := rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) float64 { return float64(n) })
		return 0 + rapid.OneOf(rapid.Float64Range(-1e30, 1e30), whole).Draw(t, "number") // no -0, which is written as 0
	case 2:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = anyValue(t, depth-1)
		}
		return list
	default:
		return anyObject(t, depth-1)
	}
}

func anyObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "names") {
		if name != Member {
			object[name] = anyValue(t, depth)
		}
	}
	return object
}

// reformatted writes a value with its members in random order, random white space
// and every character escaped.
func reformatted(value any, random *rand.Rand) string {
	space := func() string { return []string{"", " ", "\n\t", "\r\n"}[random.Intn(4)] }
	var b strings.Builder
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for name, inner := range v {
			parts = append(parts, space()+escaped(name)+space()+":"+space()+reformatted(inner, random))
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		b.WriteString("{" + strings.Join(parts, space()+",") + space() + "}")
	case []any:
		var parts []string
		for _, inner := range v {
			parts = append(parts, space()+reformatted(inner, random))
		}
		b.WriteString("[" + strings.Join(parts, space()+",") + space() + "]")
	case string:
		b.WriteString(escaped(v))
	default:
		b.Write(marshal(v))
	}
	return b.String()
}

func marshal(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return b
}

// escaped quotes ASCII letters as \u escapes and leaves the rest to the encoder.
func escaped(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c >= 'a' && c <= 'z' {
			b.WriteString(`\u00` + hex.EncodeToString([]byte{byte(c)}))
			continue
		}
		quoted := string(marshal(string(c)))
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return `"` + b.String() + `"`
}

func TestReformattedObjectsVerify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := anyObject(t, 3)
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
		known := []schema.Key{{KeyID: "k", PublicKey: key.Public().(ed25519.PublicKey)}}
		s, err := Sign(marshal(object), "k", key)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := Signed(marshal(object), "k", key)
		if err != nil {
			t.Fatal(err)
		}
		object[Member] = map[string]any{"algorithm": s.Algorithm, "value": s.Value, "key_id": s.KeyID}
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		for _, text := range []string{string(signed), reformatted(object, random), reformatted(object, random)} {
			if err := Verify([]byte(text), s, known); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	})
}

func TestChangedObjectsDoNotVerify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := anyObject(t, 3)
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
		known := []schema.Key{{KeyID: "k", PublicKey: key.Public().(ed25519.PublicKey)}}
		before := marshal(object)
		s, err := Sign(before, "k", key)
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name")
		change := map[string]func(){
			"add":     func() { object["new "+name] = nil },
			"replace": func() { object[name] = anyValue(t, 1) },
			"remove": func() {
				for name := range object {
					delete(object, name)
					return
				}
			},
			"alter": func() {
				for name := range object {
					object[name] = []any{object[name]}
					return
				}
			},
		}
		change[rapid.SampledFrom([]string{"add", "replace", "remove", "alter"}).Draw(t, "change")]()
		after := marshal(object)
		err = Verify(after, s, known)
		if same := bytes.Equal(before, after); same != (err == nil) || !same && !errors.Is(err, ErrWrong) {
			t.Fatalf("%s changed to %s: %v", before, after, err)
		}
	})
}
