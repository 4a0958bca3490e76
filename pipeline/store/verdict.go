package store

import (
	"crypto/sha256"
	"strconv"
	"strings"
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

// verdictRow is a verdict as it is read from the database.
type verdictRow struct {
	Owned
	VerdictKey
	AgentID           string    `ch:"agent_id"`
	TraceID           string    `ch:"trace_id"`
	CardID            string    `ch:"card_id"`
	VerifiedAt        time.Time `ch:"verified_at"`
	Status            string    `ch:"status"`
	Verified          bool      `ch:"verified"`
	RecommendedAction string    `ch:"recommended_action"`

	// The driver is slow at arrays, so each kind of remarks has one (see remarks).
	Violations []string `ch:"all_violations"`
	Warnings   []string `ch:"all_warnings"`
	Findings   []string `ch:"all_findings"`

	SimilarityScore  float64   `ch:"similarity_score"`
	Similarities     []float64 `ch:"similarities"`
	MeanSimilarity   float64   `ch:"mean_similarity"`
	Trend            float64   `ch:"trend"`
	AlgorithmVersion string    `ch:"algorithm_version"`
	Checks           string    `ch:"checks"` // one line each
	AbsentTriggers   []uint16  `ch:"absent_triggers"`
	GroundedClaims   uint32    `ch:"grounded_claims"`
	InferredClaims   uint32    `ch:"inferred_claims"`
	Methodology      string    `ch:"methodology"`
}

func (r *verdictRow) verdict() *schema.Verdict {
	v := &schema.Verdict{
		Verified: r.Verified, Status: schema.VerdictStatus(r.Status),
		RecommendedAction: schema.Recommendation(r.RecommendedAction),
		TraceID:           r.TraceID, AgentID: r.AgentID, CardID: r.CardID, Timestamp: r.VerifiedAt,
		Violations:      remarks(r.Violations),
		Warnings:        remarks(r.Warnings),
		Findings:        remarks(r.Findings),
		SimilarityScore: r.SimilarityScore,
		Metadata: schema.Metadata{
			AlgorithmVersion: r.AlgorithmVersion, EngineVersion: r.EngineVersion, Profile: r.Profile,
			CardDigest: r.CardDigest, CardRevokedAt: r.revoked(), TraceDigest: r.TraceDigest, ChecksPerformed: []string{},
			Similarity: schema.SimilarityDetails{
				Similarities: r.Similarities, MeanSimilarity: r.MeanSimilarity, Trend: r.Trend,
			},
			GroundedClaims: int(r.GroundedClaims), InferredClaims: int(r.InferredClaims), Methodology: r.Methodology,
		},
	}
	if r.Checks != "" {
		v.Metadata.ChecksPerformed = strings.Split(r.Checks, "\n")
	}
	for _, index := range r.AbsentTriggers {
		v.Metadata.AbsentTriggers = append(v.Metadata.AbsentTriggers, int(index))
	}
	return v
}

// remarks returns the remarks whose types, severities, descriptions and fields parts has, in this order.
func remarks(parts []string) []schema.Remark {
	n := len(parts) / 4
	out := make([]schema.Remark, n)
	for i := range out {
		out[i] = schema.Remark{
			Type: parts[i], Severity: schema.Severity(parts[n+i]), Description: parts[2*n+i], Field: parts[3*n+i],
		}
	}
	return out
}
