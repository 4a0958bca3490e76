package store

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// VerdictID returns the identity of a verdict. It is the SHA-256 of: the digests of trace and
// card, the engine version, NUL, the profile, and, if the card's revocation led to a finding, NUL
// and the time of the revocation in decimal Unix nanoseconds. Column verdict_id is its
// hexadecimal form.
func VerdictID(m *schema.Metadata) schema.Digest {
	const revocation = 1 + 20
	b := make([]byte, 0, 2*sha256.Size+len(m.EngineVersion)+1+len(m.Profile)+revocation)
	b = append(b, m.TraceDigest[:]...)
	b = append(b, m.CardDigest[:]...)
	b = append(b, m.EngineVersion...)
	b = append(b, 0)
	b = append(b, m.Profile...)
	if !m.CardRevokedAt.IsZero() {
		b = strconv.AppendInt(append(b, 0), m.CardRevokedAt.UnixNano(), 10)
	}
	return schema.DigestOf(b)
}

// VerdictKey holds the parts of a stored verdict's identity.
type VerdictKey struct {
	TraceDigest   schema.Digest `ch:"trace_digest"`
	CardDigest    schema.Digest `ch:"card_digest"`
	EngineVersion string        `ch:"engine_version"`
	Profile       string        `ch:"profile"`
	RevokedAt     time.Time     `ch:"revoked_at"` // 1970 if it was not revoked
}

// ID returns the verdict's VerdictID. The column of the database is for people who query it. This
// program decides by the key alone.
func (k *VerdictKey) ID() schema.Digest {
	return VerdictID(&schema.Metadata{TraceDigest: k.TraceDigest, CardDigest: k.CardDigest,
		EngineVersion: k.EngineVersion, Profile: k.Profile, CardRevokedAt: k.revoked()})
}

// revoked returns when the card was revoked, or the zero time if it was not.
func (k *VerdictKey) revoked() time.Time {
	if k.RevokedAt.UnixNano() == 0 {
		return time.Time{}
	}
	return k.RevokedAt
}
