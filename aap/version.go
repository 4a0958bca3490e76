package aap

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/plumbline/plumbline/schema"
)

// What a verdict says about its origin.
const (
	EngineVersion    = "plumbline-2" // changes whenever any verdict could
	AlgorithmVersion = "1.2.0"       // of the published algorithm whose features we use
	ProfileSpec      = "spec"
)

// VerdictID identifies a verdict over replays: the SHA-256 of tenant, the
// trace's identity (agent, trace id, digest), engine version, profile and card
// digest, and where the card's revocation led to a finding, its time. A trace
// judged under an unknown card has another id than the same trace once its card
// is there; likewise one judged before its card was revoked.
func VerdictID(tenant string, v *schema.Verdict) schema.Digest {
	b := make([]byte, 0, 512)
	for _, part := range [...]string{
		tenant, v.AgentID, v.TraceID, v.Metadata.EngineVersion, v.Metadata.Profile,
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = append(b, v.Metadata.TraceDigest[:]...)
	b = append(b, v.Metadata.CardDigest[:]...)
	if revoked := v.Metadata.CardRevokedAt; !revoked.IsZero() {
		b = binary.BigEndian.AppendUint64(b, uint64(revoked.UnixNano()))
	}
	return sha256.Sum256(b)
}
