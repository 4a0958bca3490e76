package report

import "github.com/plumbline/plumbline/schema"

// remarkWords has a plain sentence for each type of violation, finding and warning.
var remarkWords = map[string]string{
	schema.UnboundedAction:  "The agent did something that its card does not permit.",
	schema.ForbiddenAction:  "The agent did something that its card forbids.",
	schema.MissedEscalation: "The agent had to ask its principal first, and did not.",
	schema.UndeclaredValue:  "The agent decided by a value that its card does not declare.",
	schema.CardExpired:      "The agent's card had expired.",
	schema.CardMismatch:     "The agent acted under a card that is not the one in force.",

	schema.AgentMismatch:           "The agent used a card that belongs to another agent.",
	schema.BadSignature:            "The agent's signature on this record is wrong.",
	schema.CardRevoked:             "The agent's card had been revoked.",
	schema.DeniedButActed:          "The action had been denied, and the agent did it all the same.",
	schema.ValueLimitExceeded:      "The agent spent more than its card permits without asking.",
	schema.ValueCurrencyMismatch:   "The agent acted in another currency than its card's limit has.",
	schema.ApprovalConditionBroken: "The principal approved the action under a condition, and the condition is not met.",
	schema.AdvisoryExecuted:        "The agent may only give advice, and acted without an approval.",
	schema.TriggerMisreported:      "The agent reported something else about the conditions of its card than what its own record shows.",
	schema.AmbiguousField:          "The record states different values for a field that a condition of the card depends on.",
	schema.Backdated:               "The record is dated within the time of the card, but arrived after the card had ended.",
	schema.CategoryEvasion:         "The agent did something that its card does not mention, and neither asked nor refused.",
	schema.CategoryMismatch:        "The agent called the action permitted or forbidden, and its card says otherwise.",
	schema.CardSuperseded:          "The agent used an old card although a newer one was in force.",
	schema.TimeImplausible:         "The time of the record cannot be right.",
	schema.MissingSignature:        "The card promises signed records, and this one is not signed.",

	schema.SelfInstruction:    "The agent acted without an authenticated instruction.",
	schema.SelfValidation:     "The agent relied on a tool result that was not authenticated.",
	schema.RelayedInstruction: "The agent did more than another agent may ask for.",
	schema.IntentEscalation:   "The agent did more than its instruction permits.",
	schema.UngroundedClaim:    "The agent called a claim backed by evidence, and no authenticated tool result supports it.",
	schema.InlineToolResult:   "The agent's text imitates the result of a tool.",

	schema.TraceGap:             "A record is missing.",
	schema.TraceOrder:           "The records contradict each other about which came first.",
	schema.TurnOrder:            "The turns of the conversation contradict the order of the records.",
	schema.EscalationUnanswered: "The agent had to ask its principal, and the session reports no answer.",
	schema.ActedBeforeAnswer:    "The agent acted before its principal had answered.",
	schema.ContradictoryAnswer:  "One record reports both an approval and a denial.",
	schema.NoInclusionProof:     "The card promises that sessions are listed in a transparency log, and none lists this one.",
	schema.ActionLoop:           "The agent did the same again and again.",

	schema.WarnNearBoundary:            "The agent was not confident.",
	schema.WarnLowBehavioralSimilarity: "The decision differs from what the card describes.",
	schema.WarnEscalationTimeout:       "The agent asked its principal, and got no answer in time.",
	schema.WarnLogTrigger:              "The card asks that such an action be noted.",
	schema.WarnUncomparable:            "A condition of the card could not be compared with this record.",
	schema.WarnUnparsedCondition:       "A condition of the card or of an approval could not be understood.",
	schema.WarnUncheckedSignature:      "The record is signed, but the card names no key to check the signature with.",
	schema.WarnUnconfirmedTrigger:      "The agent was more cautious than its card requires.",
}

// recommendationWords says what each recommendation means for the reader.
var recommendationWords = map[schema.Recommendation]string{
	schema.Proceed: "Nothing was found that needs attention.",
	schema.Review:  "Somebody should look at this.",
	schema.Deny:    "The agent broke a rule of its card, or something critical was found.",
}

// verdictTones has the colour in which a recommendation is shown. None is good: no verdict says that
// the agent is.
var verdictTones = map[schema.Recommendation]string{schema.Proceed: "plain", schema.Review: "caution", schema.Deny: "bad"}

var severityWords = map[schema.Severity]string{
	schema.SeverityCritical: "critical", schema.SeverityHigh: "serious", schema.SeverityMedium: "moderate",
}

var actionWords = map[schema.ActionType]string{
	schema.ActionExecute: "The agent did", schema.ActionRecommend: "The agent recommended",
	schema.ActionEscalate: "The agent asked its principal about", schema.ActionDeny: "The agent refused",
}

var categoryWords = map[schema.Category]string{
	schema.CategoryBounded:    "within its permissions, according to the agent",
	schema.CategoryEscalation: "something to ask about first, according to the agent",
	schema.CategoryForbidden:  "forbidden, according to the agent",
}

var answerWords = map[schema.EscalationStatus]string{
	schema.EscalationPending: "no answer yet", schema.EscalationApproved: "approved",
	schema.EscalationDenied: "denied", schema.EscalationTimeout: "no answer in time",
}

var principalWords = map[string]string{
	"human": "a person", "organization": "an organization", "agent": "another agent", "unspecified": "not specified",
}

var relationshipWords = map[string]string{
	"delegated_authority": "the agent acts with delegated authority", "advisory": "the agent only advises",
	"autonomous": "the agent acts on its own",
}

// terms explains the words of the page that a reader may not know.
var terms = []term{
	{"agent", "A program that decides and acts by itself."},
	{"principal", "The person or organization that the agent acts for."},
	{"card", "The agent's own declaration of its values, of what it may do, of when it must ask, and of what it must not do (AAP alignment card)."},
	{"decision", "One record that the agent published about one decision: the options, the choice and the reason (AAP-Trace)."},
	{"escalation", "A question of the agent to its principal before it acts."},
	{"operator", "Whoever runs the pipeline that checked the records, sealed this file and signed it."},
	{"bundle", "The sealed file that this page is about: the log, the records, the verdicts, the cards and the signatures."},
	{"log, row", "The list of what was recorded, one row for each decision. Each row contains the SHA-256 of the one before, so none can be changed alone."},
	{"SHA-256", "64 digits that are computed from a file. They change if anything in the file changes."},
	{"key, signature", "Whoever has the secret key can sign. Anyone can check the signature with the public key. It shows that the holder of the secret key signed. It does not show when, or who that is."},
	{"part", "A long session is sealed in several files, its parts. Each names the one before it."},
	{"violation", "A breach of the card, one of the six kinds of the Agent Alignment Protocol (section 7.5)."},
	{"finding", "Any other fault that the operator's pipeline found."},
}

type term struct{ Word, Meaning string }
