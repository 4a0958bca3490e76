package aap

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// The documentation explains every type that a verdict can hold, with its severity.
func TestTypesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/FINDINGS.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for kind, severity := range severities {
		if !strings.Contains(text, fmt.Sprintf("\n| `%s` | %s | ", kind, severity)) {
			t.Errorf("%s with severity %s has no line", kind, severity)
		}
	}
	for _, warning := range []string{schema.WarnNearBoundary, schema.WarnLowBehavioralSimilarity, schema.WarnEscalationTimeout, schema.WarnLogTrigger,
		schema.WarnUnconfirmedTrigger, schema.WarnUncomparable, schema.WarnUnparsedCondition, schema.WarnUncheckedSignature} {
		if !strings.Contains(text, fmt.Sprintf("\n| `%s` | ", warning)) {
			t.Errorf("%s has no line", warning)
		}
	}
	if !strings.Contains(text, "`"+EngineVersion+"`") {
		t.Errorf("the engine is %s", EngineVersion)
	}
}
