package micro_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/micro"
	"github.com/plumbline/plumbline/schema/published"
)

var key = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func public() ed25519.PublicKey { return ed25519.PublicKey(key[ed25519.SeedSize:]) }

func scan() micro.Scan {
	return micro.Scan{
		URL: "https://example.com/a?b=1|2", DOMHash: strings.Repeat("ab", 32), ScannerVersionHash: "sha256:" + strings.Repeat("cd", 32),
		Origin: "local", At: time.Date(2026, 3, 14, 11, 22, 1, 5, time.FixedZone("", 3600)),
	}
}

func signed(t rapid.TB) *micro.Proof {
	t.Helper()
	p, err := micro.New(scan())
	if err != nil {
		t.Fatal(err)
	}
	p.Sign(key)
	return p
}

func encode(t rapid.TB, p *micro.Proof) []byte {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPayloadIsTheDrafts checks prefixes, nine decimals, and that "|" is encoded.
func TestPayloadIsTheDrafts(t *testing.T) {
	want := "https://example.com/a?b=1%7C2|sha256:" + strings.Repeat("ab", 32) + "|2026-03-14T10:22:01.000000005Z|sha256:" + strings.Repeat("cd", 32) + "|local"
	p := signed(t)
	if got := p.Payload(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if p.Verify(public()) != micro.Pass {
		t.Error("the proof's own signature does not verify")
	}
}

func TestPublishedExample(t *testing.T) {
	data := published.Read(t, "conformance/aivs/aivs-spec-examples/aivs-micro.json")
	p, err := micro.Parse(data)
	if err != nil || p.Verify(public()) != micro.Skip {
		t.Errorf("%+v, error %v", p, err)
	}
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*micro.Proof)
		want   micro.Result
	}{
		"whole":         {func(*micro.Proof) {}, micro.Pass},
		"url":           {func(p *micro.Proof) { p.URL += "x" }, micro.Fail},
		"dom":           {func(p *micro.Proof) { p.DOMHash = p.ScannerVersionHash }, micro.Fail},
		"time":          {func(p *micro.Proof) { p.Timestamp = strings.Replace(p.Timestamp, "5Z", "6Z", 1) }, micro.Fail},
		"scanner":       {func(p *micro.Proof) { p.ScannerVersionHash = p.DOMHash }, micro.Fail},
		"origin":        {func(p *micro.Proof) { p.ScanOrigin = "cloud" }, micro.Fail},
		"unsigned":      {func(p *micro.Proof) { p.Signature = micro.Unsigned }, micro.Skip},
		"no signature":  {func(p *micro.Proof) { p.Signature = "ed25519:" }, micro.Fail},
		"other signing": {func(p *micro.Proof) { p.Sign(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))) }, micro.Fail},
	} {
		p := signed(t)
		c.change(p)
		if got := p.Verify(public()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := signed(t).Verify(nil); got != micro.Fail {
		t.Errorf("without a key: %s", got)
	}
}

func TestParseRefuses(t *testing.T) {
	whole := string(encode(t, signed(t)))
	if _, err := micro.Parse([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"further member":   {`"url"`, `"note":"x","url"`, "note"},
		"member twice":     {`"url"`, `"scan_origin":"x","url"`, "scan_origin"},
		"member missing":   {`"scan_origin":"local"`, `"scan_origin":""`, "scan_origin"},
		"number":           {`"scan_origin":"local"`, `"scan_origin":1`, "scan_origin: not a string"},
		"null":             {`"scan_origin":"local"`, `"scan_origin":null`, "scan_origin: not a string"},
		"bar in url":       {`%7C`, `|`, "url"},
		"relative url":     {`https://example.com`, ``, "url"},
		"upper-case hash":  {strings.Repeat("ab", 32), strings.Repeat("AB", 32), "dom_hash"},
		"hash unprefixed":  {"sha256:ab", "ab", "dom_hash"},
		"three decimals":   {".000000005Z", ".000Z", "timestamp"},
		"decimal comma":    {".000000005Z", ",000000005Z", "timestamp"},
		"zone":             {"000000005Z", "000000005+00:00", "timestamp"},
		"no such day":      {"2026-03-14", "2026-02-30", "timestamp"},
		"bar in origin":    {`"local"`, `"lo|cal"`, "scan_origin"},
		"other algorithm":  {"ed25519:", "ed448:", "signature"},
		"signature longer": {`=="`, `==A"`, "signature"},
		"signature folded": {`=="`, `\n=="`, "signature"},
		"signature of 63":  {signed(t).Signature, "ed25519:" + base64.StdEncoding.EncodeToString(make([]byte, 63)), "signature"},
		"not JSON":         {`{`, `[`, "not a JSON object"},
	} {
		text := strings.Replace(whole, c.from, c.to, 1)
		if text == whole {
			t.Fatalf("%s: %q is not in %s", name, c.from, whole)
		}
		if _, err := micro.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A proof of MaxBytes is accepted in both forms, and a longer one is refused.
func TestLongestProof(t *testing.T) {
	parts, err := signed(t).TXT()
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{string(encode(t, signed(t))), micro.ZoneFile(parts)} {
		longest := form + strings.Repeat(" ", micro.MaxBytes-len(form))
		if p, err := micro.Read([]byte(longest)); err != nil || p.Verify(public()) != micro.Pass {
			t.Errorf("%.20s: %+v, %v", form, p, err)
		}
		if p, err := micro.Read([]byte(longest + " ")); err == nil || !strings.Contains(err.Error(), "bytes, a proof may have") {
			t.Errorf("%.20s, longer: %+v, %v", form, p, err)
		}
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	_, err := micro.New(micro.Scan{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	for _, name := range []string{"url", "dom_hash", "scanner_version_hash", "timestamp", "scan_origin"} {
		if err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("nothing about %s in %v", name, err)
		}
	}
}

func TestTXT(t *testing.T) {
	p := signed(t)
	parts, err := p.TXT()
	if err != nil || len(parts) < 2 {
		t.Fatalf("%q, error %v", parts, err)
	}
	for _, part := range parts {
		if len(part) > 255 {
			t.Errorf("a string of %d bytes", len(part))
		}
	}
	back, err := micro.ParseTXT(parts)
	if err != nil || *back != *p || back.Verify(public()) != micro.Pass {
		t.Errorf("%+v, error %v", back, err)
	}
	for _, bad := range [][]string{nil, {"v=spf1 -all"}, parts[:1], {parts[0] + parts[1] + "; x=1"}, {strings.Replace(parts[0], "u=", "d=", 1), parts[1]}} {
		if _, err := micro.ParseTXT(bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
	p.URL += ";x"
	if _, err := p.TXT(); err == nil {
		t.Error("a record contains a ;")
	}
}

// A URL without a host or an equivalent is refused.
func TestURLNamesAPlace(t *testing.T) {
	for address, good := range map[string]bool{
		"https://": false, "http://": false, "https:///path": false, "https://:443": false, "https://user@": false, "https:": false,
		"https:example.com": false, "ftp://": false, "file:///": false, "urn:": false, "https://?q=1": false, "HTTPS://": false,
		"https://a": true, "https://a:443/b": true, "HTTPS://A": true, "http://[::1]/": true, "file:///a": true, "urn:isbn:0451450523": true,
	} {
		s := scan()
		s.URL = address
		if _, err := micro.New(s); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Read accepts both forms that the sign command writes, for any characters of a proof.
func TestReadAcceptsBothForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scan()
		s.URL = "https://example.org/" + strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "length"))
		s.Origin = rapid.StringMatching(`[^|;\x00]{1,40}`).Draw(t, "origin")
		p, err := micro.New(s)
		if err != nil {
			t.Skip("no proof")
		}
		p.Sign(key)
		parts, err := p.TXT()
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{string(encode(t, p)), "\n" + micro.ZoneFile(parts) + "\n"} {
			if back, err := micro.Read([]byte(form)); err != nil || back.Payload() != p.Payload() || back.Verify(public()) != micro.Pass {
				t.Fatalf("%s: %+v, %v", form, back, err)
			}
		}
	})
}

// White space at the end of a text is signed, and is kept.
func TestTXTKeepsWhiteSpaceAtTheEnd(t *testing.T) {
	for _, origin := range []string{"a ", "\x01\u0085", " a\n", "\t"} {
		s := scan()
		s.Origin = origin
		p, err := micro.New(s)
		if err != nil {
			t.Fatal(err)
		}
		p.Sign(key)
		parts, err := p.TXT()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := micro.ParseTXT(parts); err != nil || back.ScanOrigin != origin || back.Verify(public()) != micro.Pass {
			t.Errorf("%q: %+v, %v", origin, back, err)
		}
	}
}

func TestReadRefusesBrokenStrings(t *testing.T) {
	for text, want := range map[string]string{
		`"v=aivs1`:                      "string 1 of the TXT record: it has no closing quotation mark",
		`"v=aivs1" x`:                   "string 2 of the TXT record does not begin with a quotation mark",
		`"v=aivs1" "x`:                  "string 2 of the TXT record: it has no closing quotation mark",
		`"v=aivs1; u=\999"`:             `string 1 of the TXT record: no byte has the code \999`,
		`"v=aivs1; u=\999`:              `string 1 of the TXT record: no byte has the code \999`,
		`"v=aivs1\`:                     "string 1 of the TXT record: it has no closing quotation mark",
		`"v=aivs1; u=https://a"`:        "1 members, an AIVS-Micro record has 6",
		`"v=aivs1; u=x; e; t; s; h; o"`: `member 2 is "e", want d=…`,
		`v=aivs1; u=https://a`:          "",
		``:                              "",
	} {
		if _, err := micro.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A text that JSON cannot represent is refused.
func TestTextsThatJSONCannotHoldAreRefused(t *testing.T) {
	s := scan()
	s.URL, s.Origin = "https://example.com/\xff", "a\xc3"
	if _, err := micro.New(s); len(micro.FaultsOf(err)) != 2 {
		t.Errorf("%v", err)
	}
	s = scan()
	s.URL, s.Origin = "https://ex.org/ä😀%7C\u2028<&>", "<\"\\\n\u0085>"
	p, err := micro.New(s)
	if err != nil {
		t.Fatal(err)
	}
	p.Sign(key)
	if back, err := micro.Parse(encode(t, p)); err != nil || back.Verify(public()) != micro.Pass {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestTimesHaveNineDecimals(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string // empty: there is no such proof
	}{
		{time.Unix(0, 0), "1970-01-01T00:00:00.000000000Z"},
		{time.Unix(-1, 1), "1969-12-31T23:59:59.000000001Z"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), "9999-12-31T23:59:59.999999999Z"},
		{time.Date(2026, 1, 1, 0, 0, 0, 120_000_000, time.FixedZone("", -3600)), "2026-01-01T01:00:00.120000000Z"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), ""},
		{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), ""},
	} {
		s := scan()
		s.At = c.at
		p, err := micro.New(s)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%v became %s", c.at, p.Timestamp)
		case c.want != "" && (err != nil || p.Timestamp != c.want || !p.ScannedAt().Equal(c.at)):
			t.Errorf("%v: %+v, %v", c.at, p, err)
		}
	}
}

// The zone file form represents any character of a record, wherever the record is split.
func TestZoneFile(t *testing.T) {
	if got, want := micro.ZoneFile([]string{`a"b \c`, "ä\n~"}), `"a\"b \\c" "\195\164\010~"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	strange := []string{`a"b \c`, "ä\n~", ""}
	if back, err := micro.ParseZoneFile(micro.ZoneFile(strange)); err != nil || !slices.Equal(back, strange) {
		t.Errorf("%q came back as %q, %v", strange, back, err)
	}
	s := scan()
	s.URL = "https://example.org/" + strings.Repeat("ä", 300)
	p, err := micro.New(s)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := p.TXT()
	if err != nil || len(parts) != 4 || len(parts[0]) != 255 || strings.ContainsFunc(micro.ZoneFile(parts), func(r rune) bool { return r > '~' }) {
		t.Errorf("%q, %v", parts, err)
	}
	if back, err := micro.ParseTXT(parts); err != nil || *back != *p {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(encode(f, signed(f)))
	f.Add([]byte(`{"url":"x:"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := micro.Parse(data)
		if err != nil {
			return
		}
		if strings.Count(p.Payload(), "|") != 4 {
			t.Errorf("ambiguous payload %q", p.Payload())
		}
		if again, err := micro.Parse(encode(t, p)); err != nil || *again != *p {
			t.Errorf("read again as %+v, error %v", again, err)
		}
	})
}
