package anchor

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/timestamp-authority/v2/pkg/verification"
)

// TimestampSuffix is appended to the bundle's file name to form the name of its time stamp.
const TimestampSuffix = ".tsr"

// Media types of RFC 3161 section 3.4.
const (
	QueryType = "application/timestamp-query"
	ReplyType = "application/timestamp-reply"
)

// MaxReply is the longest accepted answer of an authority, including its certificates.
const MaxReply = 256 << 10

// Query returns the request (RFC 3161 section 2.4.1, DER) to stamp the SHA-256 of a bundle's
// 64-byte signature. The nonce must be random. The request asks the authority to include its
// certificates.
func Query(signature []byte, nonce *big.Int) ([]byte, error) {
	query, err := timestamp.CreateRequest(bytes.NewReader(signature), &timestamp.RequestOptions{
		Hash: crypto.SHA256, Certificates: true, Nonce: nonce,
	})
	if err != nil {
		return nil, fmt.Errorf("time stamp query: %w", err)
	}
	return query, nil
}

// Authorities reads PEM certificates of trusted time stamping authorities. Each is trusted
// itself, so a root, an intermediate or the authority's own certificate may be given.
func Authorities(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate of a time stamping authority: %w", err)
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errors.New("certificate of a time stamping authority: no PEM certificate")
	}
	return found, nil
}

// VerifyTimestamp returns the time in an authority's answer (RFC 3161 section 2.4.2, DER): the
// signature existed at that time. The answer must be over the signature's SHA-256 or a longer
// hash. It must be signed with a certificate for time stamping alone that one of the trusted
// certificates certifies at that time. It must contain the nonce where one is given.
// VerifyTimestamp does not check revocation, which needs a network.
func VerifyTimestamp(reply, signature []byte, trusted []*x509.Certificate, nonce *big.Int) (time.Time, error) {
	if len(reply) > MaxReply {
		return time.Time{}, fmt.Errorf("time stamp: %d bytes, want at most %d", len(reply), MaxReply)
	}
	stamp, err := verification.VerifyTimestampResponse(reply, bytes.NewReader(signature),
		verification.VerifyOpts{Roots: trusted, Nonce: nonce})
	if err != nil {
		return time.Time{}, fmt.Errorf("time stamp: %w", err)
	}
	return stamp.Time, nil
}

// ClockSkew is the largest accepted difference between the clocks of a signer and an authority.
const ClockSkew = 5 * time.Minute

// CheckStampTime reports whether the time of a stamp agrees with the time that the bundle states
// for itself and with the end of the key that signed it (zero: it has none, or it is not known).
// A stamp may be much later than the export, since the authority may have been unavailable. A
// stamp after the key's end proves nothing: the signature may be as recent as the stamp, and the
// key's holder may have written any time into the bundle. A bundle that was stamped before its
// export has a false date.
func CheckStampTime(stamped, exportedAt, keyEnd time.Time) error {
	stamped = stamped.UTC().Truncate(time.Second) // the precision of times in keys and bundles
	if !keyEnd.IsZero() && stamped.After(keyEnd) {
		return fmt.Errorf("time stamp: its time is %s, after the end of the key at %s: it does not show that the bundle was signed before that end, whatever exported_at says",
			stamped.Format(time.RFC3339), keyEnd.UTC().Format(time.RFC3339))
	}
	if exportedAt.After(stamped.Add(ClockSkew)) {
		return fmt.Errorf("time stamp: its time is %s, but exported_at is %s: a bundle is stamped after it was exported",
			stamped.Format(time.RFC3339), exportedAt.UTC().Format(time.RFC3339))
	}
	return nil
}
