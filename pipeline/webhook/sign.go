package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp" // seconds since 1970
	HeaderSignature = "webhook-signature" // "v1,<base64>", several separated by spaces
)

// Secret is the shared key of an endpoint: 24 to 64 bytes.
type Secret []byte

const (
	secretPrefix      = "whsec_"
	leastSecret       = 24
	mostSecret        = 64
	mostSecretsAFile  = 8
	mostSecretsBytes  = 4096
	timestampLeeway   = 5 * time.Minute
	signatureVersion1 = "v1,"
)

// NewSecret returns a random secret of 32 bytes.
func NewSecret() Secret {
	s := make(Secret, 32)
	_, _ = rand.Read(s) // never fails
	return s
}

// Text returns the secret in the form that files and receivers have: whsec_ and base64.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// ParseSecret is the inverse of Text. The error contains no byte of the secret.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return nil, errors.New("want whsec_ and base64: make one with plumbline webhook secret")
	}
	s, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("what follows whsec_ is not base64")
	}
	if len(s) < leastSecret || len(s) > mostSecret {
		return nil, fmt.Errorf("has %d bytes, want %d to %d", len(s), leastSecret, mostSecret)
	}
	return s, nil
}

// ReadSecrets reads a file with one secret a line. Every message is signed with each of them, so
// a receiver may change from one to the next at any time. It refuses a file that everyone may read.
func ReadSecrets(path string) ([]Secret, error) {
	text, err := config.ReadGuarded(path, mostSecretsBytes, 0o007, "lets everyone read it: chmod o-rwx")
	if err != nil {
		return nil, err
	}
	var secrets []Secret
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := ParseSecret(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 || len(secrets) > mostSecretsAFile {
		return nil, fmt.Errorf("%s: has %d secrets, want 1 to %d, one a line", path, len(secrets), mostSecretsAFile)
	}
	return secrets, nil
}

// Sign sets the three headers of a message that is sent at a time, with a signature by each secret.
func Sign(header http.Header, secrets []Secret, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = signatureVersion1 + base64.StdEncoding.EncodeToString(secret.mac(id, timestamp, body))
	}
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, strings.Join(signatures, " "))
}

func (s Secret) mac(id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify returns nil if one of the signatures is by one of the secrets, and the timestamp differs
// from now by at most five minutes.
func Verify(header http.Header, secrets []Secret, now time.Time, body []byte) error {
	id, timestamp, signatures := header.Get(HeaderID), header.Get(HeaderTimestamp), header.Get(HeaderSignature)
	if id == "" || timestamp == "" || signatures == "" {
		return fmt.Errorf("want the headers %s, %s and %s", HeaderID, HeaderTimestamp, HeaderSignature)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: want seconds since 1970", HeaderTimestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > timestampLeeway {
		return fmt.Errorf("%s: differs from this machine's clock by %s, at most %s is allowed", HeaderTimestamp, age.Abs().Round(time.Second), timestampLeeway)
	}
	for _, signature := range strings.Fields(signatures) {
		encoded, ok := strings.CutPrefix(signature, signatureVersion1)
		given, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			continue // of another version
		}
		for _, secret := range secrets {
			if hmac.Equal(given, secret.mac(id, timestamp, body)) {
				return nil
			}
		}
	}
	return errors.New("no signature is by the expected secret")
}
