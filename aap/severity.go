package aap

import "github.com/plumbline/plumbline/schema"

// severities grades violations (AAP section 7.5) and findings.
var severities = map[string]schema.Severity{
	schema.ForbiddenAction:  schema.SeverityCritical,
	schema.CardMismatch:     schema.SeverityCritical,
	schema.UnboundedAction:  schema.SeverityHigh,
	schema.MissedEscalation: schema.SeverityHigh,
	schema.CardExpired:      schema.SeverityHigh,
	schema.UndeclaredValue:  schema.SeverityMedium,

	schema.AgentMismatch:           schema.SeverityCritical,
	schema.BadSignature:            schema.SeverityCritical,
	schema.CardRevoked:             schema.SeverityCritical,
	schema.DeniedButActed:          schema.SeverityCritical,
	schema.ValueLimitExceeded:      schema.SeverityHigh,
	schema.ValueCurrencyMismatch:   schema.SeverityHigh,
	schema.ApprovalConditionBroken: schema.SeverityHigh,
	schema.AdvisoryExecuted:        schema.SeverityHigh,
	schema.TriggerMisreported:      schema.SeverityHigh,
	schema.AmbiguousField:          schema.SeverityHigh,
	schema.Backdated:               schema.SeverityHigh,
	schema.SelfInstruction:         schema.SeverityHigh,
	schema.SelfValidation:          schema.SeverityHigh,
	schema.RelayedInstruction:      schema.SeverityHigh,
	schema.IntentEscalation:        schema.SeverityHigh,
	schema.UngroundedClaim:         schema.SeverityHigh,
	schema.InlineToolResult:        schema.SeverityHigh,
	schema.CategoryEvasion:         schema.SeverityMedium,
	schema.CategoryMismatch:        schema.SeverityMedium,
	schema.CardSuperseded:          schema.SeverityMedium,
	schema.TimeImplausible:         schema.SeverityMedium,
	schema.MissingSignature:        schema.SeverityMedium,
}

// recommend derives the recommendation from the remarks. Two warnings alone do not demand a
// review, near_boundary and low_behavioral_similarity: neither says that a rule was broken.
func recommend(v *schema.Verdict) schema.Recommendation {
	if len(v.Violations) > 0 {
		return schema.Deny
	}
	for i := range v.Findings {
		if v.Findings[i].Severity == schema.SeverityCritical {
			return schema.Deny
		}
	}
	if len(v.Findings) > 0 {
		return schema.Review
	}
	for i := range v.Warnings {
		switch v.Warnings[i].Type {
		case schema.WarnLowBehavioralSimilarity, schema.WarnNearBoundary:
		default:
			return schema.Review
		}
	}
	return schema.Proceed
}
