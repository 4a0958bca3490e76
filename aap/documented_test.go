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
			t.Errorf("docs do not list %s with severity %s", kind, severity)
		}
	}
	for _, warning := range []string{schema.WarnNearBoundary, schema.WarnLowBehavioralSimilarity, schema.WarnEscalationTimeout, schema.WarnLogTrigger,
		schema.WarnUnconfirmedTrigger, schema.WarnUncomparable, schema.WarnUnparsedCondition, schema.WarnUncheckedSignature} {
		if !strings.Contains(text, fmt.Sprintf("\n| `%s` | ", warning)) {
			t.Errorf("docs do not list %s", warning)
		}
	}
	if !strings.Contains(text, "`"+EngineVersion+"`") {
		t.Errorf("the engine is %s", EngineVersion)
	}
}
