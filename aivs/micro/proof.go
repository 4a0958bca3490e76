package micro

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Proof is an AIVS-Micro proof (draft section 6.2).
type Proof struct {
	URL                string `json:"url"`
	DOMHash            string `json:"dom_hash"`             // "sha256:" and 64 hexadecimal digits
	Timestamp          string `json:"timestamp"`            // UTC, nine decimals, Z
	Signature          string `json:"signature"`            // "ed25519:" and base64, or Unsigned
	ScannerVersionHash string `json:"scanner_version_hash"` // as DOMHash
	ScanOrigin         string `json:"scan_origin"`          // such as "local"
}

// Unsigned is the signature of a proof without one.
const Unsigned = "unsigned"

// MaxBytes is the longest accepted proof in JSON.
const MaxBytes = 16 << 10

const (
	timeForm        = "2006-01-02T15:04:05.000000000Z"
	hashPrefix      = "sha256:"
	signaturePrefix = "ed25519:"
)

// Fault is the defect of one member of a proof. The errors of New and Parse join one Fault for
// each such member.
type Fault struct {
	Member  string
	Message string
}

func (f *Fault) Error() string { return f.Member + ": " + f.Message }

// FaultsOf returns the faults that an error of New or Parse joins. It returns none where the
// parsed text is not a JSON object.
func FaultsOf(err error) (faults []*Fault) {
	var one *Fault
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			faults = append(faults, FaultsOf(e)...)
		}
	} else if errors.As(err, &one) {
		faults = append(faults, one)
	}
	return faults
}

// Scan is the input from which New makes a proof.
type Scan struct {
	URL                string
	DOMHash            string // with or without "sha256:"
	ScannerVersionHash string // with or without "sha256:"
	Origin             string
	At                 time.Time
}

// New returns the unsigned proof of a scan, or an error with every reason why there is none. A
// "|" in the URL is percent-encoded.
func New(s Scan) (*Proof, error) {
	p := &Proof{
		URL:                strings.ReplaceAll(s.URL, "|", "%7C"),
		DOMHash:            prefixed(s.DOMHash),
		Timestamp:          s.At.UTC().Format(timeForm),
		Signature:          Unsigned,
		ScannerVersionHash: prefixed(s.ScannerVersionHash),
		ScanOrigin:         s.Origin,
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func prefixed(hash string) string { return hashPrefix + strings.TrimPrefix(hash, hashPrefix) }

// Parse reads a proof from JSON: the six members, each once, and no other. The error names every
// invalid member.
func Parse(data []byte) (*Proof, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%d bytes, a proof may have %d", len(data), MaxBytes)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	p := new(Proof)
	fields := map[string]*string{
		"url": &p.URL, "dom_hash": &p.DOMHash, "timestamp": &p.Timestamp, "signature": &p.Signature,
		"scanner_version_hash": &p.ScannerVersionHash, "scan_origin": &p.ScanOrigin,
	}
	var faults []error
	for name, value := range members {
		field := fields[name]
		if field == nil {
			faults = append(faults, &Fault{name, "not a member of a proof: no signature covers it"})
		} else if err := json.Unmarshal(value, field); err != nil || value.Kind() != '"' {
			faults = append(faults, &Fault{name, "not a string"})
		}
	}
	return p, errors.Join(append(faults, p.validate())...)
}

// ScannedAt returns the proof's timestamp.
func (p *Proof) ScannedAt() time.Time {
	at, err := time.Parse(timeForm, p.Timestamp)
	if err != nil {
		return time.Time{} // does not happen for a proof of New or Parse, which was checked
	}
	return at
}

// Payload returns the text that is signed (draft section 6.3).
func (p *Proof) Payload() string {
	return strings.Join([]string{p.URL, p.DOMHash, p.Timestamp, p.ScannerVersionHash, p.ScanOrigin}, "|")
}

// validate returns an error for every member that does not follow the draft.
func (p *Proof) validate() error {
	var faults []error
	check := func(name string, ok bool, want string) {
		if !ok {
			faults = append(faults, &Fault{name, "want " + want})
		}
	}
	check("url", isAddress(p.URL) && isPart(p.URL), "an absolute URL that names a place, with | written as %7C")
	check("dom_hash", isHash(p.DOMHash), "sha256: and 64 lower-case hexadecimal digits")
	check("scanner_version_hash", isHash(p.ScannerVersionHash), "sha256: and 64 lower-case hexadecimal digits")
	at, err := time.Parse(timeForm, p.Timestamp)
	check("timestamp", err == nil && at.Format(timeForm) == p.Timestamp, "a time in UTC with nine decimals and Z")
	check("scan_origin", p.ScanOrigin != "" && isPart(p.ScanOrigin), "a text without |")
	_, err = p.signature()
	check("signature", p.Signature == Unsigned || err == nil, "ed25519: and base64 of 64 bytes, or unsigned")
	return errors.Join(faults...)
}

// isAddress reports whether a text is an absolute URL with a host, or with what its scheme has
// instead of a host. An HTTP URL must have a host.
func isAddress(text string) bool {
	address, err := url.Parse(text)
	if err != nil || address.Scheme == "" {
		return false
	}
	if address.Scheme == "http" || address.Scheme == "https" {
		return address.Hostname() != ""
	}
	return address.Hostname() != "" || address.Opaque != "" || strings.Trim(address.Path, "/") != ""
}

// isPart reports whether a text can be one member of the payload and is the same in JSON.
func isPart(text string) bool { return !strings.Contains(text, "|") && utf8.ValidString(text) }

func isHash(text string) bool {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == 32 && hex.EncodeToString(b) == digits
}

// Result is the outcome of verifying a proof (draft section 6.4).
type Result string

// The three results.
const (
	Pass Result = "PASS"
	Fail Result = "FAIL"
	Skip Result = "SKIP" // the proof is unsigned: nothing is proven
)

// Sign signs the proof's payload and replaces its signature.
func (p *Proof) Sign(key ed25519.PrivateKey) {
	p.Signature = signaturePrefix + base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(p.Payload())))
}

// Verify verifies a proof that Parse or New returned. It returns Skip for an unsigned proof.
func (p *Proof) Verify(key ed25519.PublicKey) Result {
	if p.Signature == Unsigned {
		return Skip
	}
	signature, err := p.signature()
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(p.Payload()), signature) {
		return Fail
	}
	return Pass
}

// signature decodes the signature. It accepts only one text for each signature.
func (p *Proof) signature() ([]byte, error) {
	text, ok := strings.CutPrefix(p.Signature, signaturePrefix)
	if !ok {
		return nil, errors.New("no Ed25519 signature")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	if len(b) != ed25519.SignatureSize || base64.StdEncoding.EncodeToString(b) != text {
		return nil, fmt.Errorf("signature: %d bytes, want %d", len(b), ed25519.SignatureSize)
	}
	return b, nil
}
